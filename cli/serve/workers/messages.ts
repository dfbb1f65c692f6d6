import type { FamilySnapshot } from '../../../common/metrics.js'
import { aggregate } from '../../../common/render-metrics.js'
import type { GatewayAccount } from '../../../src/api/identity.js'
import type { ConsoleAddress } from '../../../src/server/console-address.js'
import type { Reloaded } from '../../../src/server/server-plugin.js'
import type { Lease } from '../../../src/state/locks/memory-leases.js'
import type { Config } from '../../config/config.js'

/** What the supervisor has started for all workers. */
export interface SharedServices {
  readonly gateway: string
  readonly embedded: boolean
  readonly platform: string | undefined
  readonly payment: string | undefined
  readonly console: ConsoleAddress | undefined
}

/** A step of a reload, in one worker. */
export type ReloadStep =
  | { readonly kind: 'prepare'; readonly config: Config }
  /** `prepare` has succeeded. */
  | { readonly kind: 'apply' | 'discard' }

export interface Questions {
  services(): SharedServices
  config(): Config
  /** Reloads the configuration of the whole server. */
  reload(requestId: string): Reloaded
  /** The current keys of the gateway account: clients of the embedded gateway can change them. */
  account(): GatewayAccount
  acquire(lease: Lease, ms: number, waitedMs: number): number | undefined
  renew(lease: Lease, ms: number): number | undefined
  yield(lease: Lease, ms: number): number | undefined
  metrics(): readonly FamilySnapshot[]
}

export type QuestionName = keyof Questions

/** Messages travel in batches. */
export type FromWorker =
  | { readonly kind: 'question'; readonly id: number; readonly name: QuestionName; readonly args: readonly unknown[] }
  /** Has no answer: the worker goes on at once. */
  | { readonly kind: 'release'; readonly lease: Lease }
  /** A message for all other workers: see SignalBoard. */
  | { readonly kind: 'signal'; readonly text: string }
  | { readonly kind: 'metrics'; readonly id: number; readonly families: readonly FamilySnapshot[] }
  /** The outcome of a step; with a text if it failed. */
  | { readonly kind: 'stepped'; readonly id: number; readonly error?: string }
  | { readonly kind: 'ready'; readonly url: string }

export type ToWorker =
  | { readonly kind: 'answer'; readonly id: number; readonly value?: unknown; readonly error?: string }
  | { readonly kind: 'signal'; readonly text: string }
  | { readonly kind: 'metrics'; readonly id: number }
  | { readonly kind: 'step'; readonly id: number; readonly step: ReloadStep }
  | { readonly kind: 'stop' }

/** Longest time for which a message waits for another one to be sent with, ms. */
const MAX_DELAY_MS = 2

/**
 * Sends the messages of one turn of the event loop together, in order: each message between processes costs a system
 * call and a wake-up on either side, which is more than a request for a lease costs otherwise.
 */
export class Batch<Message> {
  readonly #send: (messages: readonly Message[]) => void
  #messages: Message[] = []
  #atEndOfTurn = false
  #late: NodeJS.Timeout | undefined

  constructor(send: (messages: readonly Message[]) => void) {
    this.#send = send
  }

  /** Sends the message at the end of this turn. */
  add(message: Message): void {
    this.#messages.push(message)
    if (this.#atEndOfTurn) return
    this.#atEndOfTurn = true
    setImmediate(() => {
      this.#atEndOfTurn = false
      this.#flush()
    })
  }

  /** Sends the message with the next one, or alone if none comes soon: under load it costs no message itself. */
  addLate(message: Message): void {
    this.#messages.push(message)
    this.#late ??= setTimeout(() => {
      this.#late = undefined
      this.#flush()
    }, MAX_DELAY_MS)
  }

  /** Sends the message at once, after those before it. */
  sendNow(message: Message): void {
    this.#messages.push(message)
    this.#flush()
  }

  #flush(): void {
    if (this.#messages.length === 0) return
    const messages = this.#messages
    this.#messages = []
    this.#send(messages)
  }
}

/** Longest wait for the metrics of a worker, ms; then its former ones are used. */
const MAX_WAIT_MS = 2000

interface PendingScrape {
  readonly worker: number
  resolve(): void
}

/**
 * Adds the metrics of all workers up. Counters of workers that have ended stay in the sum: Prometheus would take a
 * smaller sum for a restart, and count everything again.
 */
export class WorkerMetrics {
  readonly #asked = new Map<number, PendingScrape>()
  readonly #last = new Map<number, readonly FamilySnapshot[]>()
  #ended: readonly FamilySnapshot[] = []
  #adding: Promise<void> = Promise.resolve()
  #questions = 0

  /**
   * @param workers whom to ask, by number
   * @param ask sends the question with this id to a worker
   */
  async collect(workers: readonly number[], ask: (worker: number, id: number) => void): Promise<FamilySnapshot[]> {
    await Promise.all(workers.map((worker) => this.#answerOf(worker, ask)))
    return aggregate([...this.#last.values(), this.#ended])
  }

  /** Takes an answer. One that comes late is used at the next scrape. */
  received(worker: number, id: number, families: readonly FamilySnapshot[]): void {
    this.#last.set(worker, families)
    this.#asked.get(id)?.resolve()
  }

  async ended(worker: number): Promise<void> {
    for (const asked of this.#asked.values()) if (asked.worker === worker) asked.resolve()
    // One at a time: two workers that end together must both stay in the sum.
    this.#adding = this.#adding.then(() => this.#add(worker))
    await this.#adding
  }

  async #add(worker: number): Promise<void> {
    const counted = this.#last.get(worker)?.filter(({ type }) => type !== 'gauge')
    if (counted === undefined) return
    const ended = await aggregate([this.#ended, counted])
    this.#last.delete(worker)
    this.#ended = ended
  }

  #answerOf(worker: number, ask: (worker: number, id: number) => void): Promise<void> {
    const id = ++this.#questions
    return new Promise((resolve) => {
      const settle = () => {
        clearTimeout(timer)
        this.#asked.delete(id)
        resolve()
      }
      const timer = setTimeout(settle, MAX_WAIT_MS)
      this.#asked.set(id, { worker, resolve: settle })
      ask(worker, id)
    })
  }
}
