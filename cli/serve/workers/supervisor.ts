import type { Worker } from 'node:cluster'
import cluster from 'node:cluster'
import { setTimeout as sleep } from 'node:timers/promises'
import { pauseAfter } from '../../../common/backoff.js'
import type { Logger } from '../../../common/log.js'
import type { FamilySnapshot } from '../../../common/metrics.js'
import { withinDeadline } from '../../../common/time.js'
import type { Lease } from '../../../src/state/locks/memory-leases.js'
import { Failure } from '../../command.js'
import type { Config } from '../../config/config.js'
import type { PreparedReload } from '../reload.js'
import { Batch, type FromWorker, type QuestionName, type ReloadStep, type ToWorker, WorkerMetrics } from './messages.js'

interface SupervisorOptions {
  readonly count: number
  /**
   * Answers a question of a worker. A rejection is passed on as its message.
   * @param asker differs for each process that was ever started
   */
  readonly answer: (name: QuestionName, args: readonly unknown[], asker: number) => Promise<unknown>
  readonly release: (lease: Lease) => void
  /** Called when a worker has ended, however it did. */
  readonly ended: (asker: number) => void
  readonly log: Logger
  /** Longest time that workers get to end their requests, ms; then they are killed. Default: no limit. */
  readonly graceMs: number | undefined
}

/** The variable with the number of a worker. */
export const WORKER_NUMBER = 'DEALGATE_WORKER_NUMBER'

/** Pause before a worker that died is started again, ms. Doubles while workers die within STEADY_MS. */
const BACKOFF = { firstMs: 100, longestMs: 30_000 }
const STEADY_MS = 60_000
/** Attempts to start the first worker, while it is killed before it is ready. */
const FIRST_ATTEMPTS = 5

/** Time beyond the grace that workers need to close what they have open, ms. */
const CLOSING_MS = 10_000

/**
 * The processes that serve requests on one port (https://nodejs.org/api/cluster.html). A worker that dies is started
 * again.
 */
export class Supervisor {
  readonly #options: SupervisorOptions
  readonly #workers = new Map<number, Worker>()
  readonly #batches = new WeakMap<Worker, Batch<ToWorker>>()
  readonly #steps = new Steps((worker, message) => this.#send(worker, message))
  /** Workers that have a configuration, as `asker`. */
  readonly #configured = new Set<number>()
  readonly #restarts = new Map<number, NodeJS.Timeout>()
  readonly #metrics = new WorkerMetrics()
  #stopping = false

  constructor(options: SupervisorOptions) {
    this.#options = options
  }

  /**
   * Starts all workers; the first one alone, because it may have to create files. Resolves when each has become ready
   * or has died once: the server works without those that are being started again.
   * @returns the address of the first one, which is that of all
   * @throws Failure when the first one ends by itself, or is killed FIRST_ATTEMPTS times, before it is ready
   */
  async start(): Promise<string> {
    const url = await this.#first()
    await Promise.all(Array.from({ length: this.#options.count - 1 }, (_, i) => this.#other(i + 2)))
    return url
  }

  /** Passes a signal on to all workers but its sender. */
  broadcast(text: string, sender?: Worker): void {
    for (const worker of this.#workers.values()) if (worker !== sender) this.#send(worker, { kind: 'signal', text })
  }

  signal(signal: NodeJS.Signals): void {
    for (const worker of this.#workers.values()) worker.process.kill(signal)
  }

  metrics(): Promise<FamilySnapshot[]> {
    const workers = new Map([...this.#workers.values()].map((worker) => [worker.id, worker]))
    return this.#metrics.collect([...workers.keys()], (id, question) => {
      const worker = workers.get(id)
      if (worker) this.#send(worker, { kind: 'metrics', id: question })
    })
  }

  /**
   * Has all workers prepare a configuration, except those that have none yet. If one cannot, none keeps it, and this
   * rejects.
   */
  prepare(config: Config): Promise<PreparedReload> {
    const configured = [...this.#workers.values()].filter(({ id }) => this.#configured.has(id))
    return this.#steps.prepareAll(configured, config)
  }

  /** A worker gets the configuration in use: from now on it takes part in changes. */
  include(asker: number): void {
    this.#configured.add(asker)
  }

  /** Lets the workers end their requests, and resolves when all have ended. */
  async stop(): Promise<void> {
    this.#stopping = true
    for (const restart of this.#restarts.values()) clearTimeout(restart)
    const workers = [...this.#workers.values()]
    const ended = Promise.all(workers.map((worker) => new Promise((resolve) => worker.once('exit', resolve))))
    for (const worker of workers) this.#send(worker, { kind: 'stop' })
    const { graceMs } = this.#options
    const kill = () => this.signal('SIGKILL')
    const late = graceMs === undefined ? undefined : setTimeout(kill, graceMs + CLOSING_MS)
    await ended
    clearTimeout(late)
  }

  /**
   * Starts the first worker. One that ends by itself has said why, and would end again. One that was killed says
   * nothing about the next.
   */
  async #first(): Promise<string> {
    for (let attempt = 1; ; attempt++) {
      const outcome = await new Promise<string | Death>((resolve) => {
        this.#fork(1, { onReady: resolve, onStillborn: resolve })
      })
      if (typeof outcome === 'string') return outcome
      const reason = reasonOf(outcome)
      if (outcome.signal === null) throw new Failure('Worker 1 could not start.')
      if (attempt === FIRST_ATTEMPTS) throw new Failure(`Worker 1 could not start in ${attempt} attempts: ${reason}.`)
      const pause = pauseAfter(attempt, BACKOFF)
      this.#options.log.error({ worker: 1, ...outcome, reason, pauseMs: pause }, DIED)
      await sleep(pause)
    }
  }

  #other(number: number): Promise<void> {
    return new Promise((resolve) => {
      this.#fork(number, { onReady: () => resolve() }).once('exit', () => resolve())
    })
  }

  /**
   * @param onReady called with the address
   * @param onStillborn called when the worker dies before it is ready. Default: it is started again
   * @param attempt of how many in a row this is one, from 1
   */
  #fork(number: number, { onReady, onStillborn }: Expected = {}, attempt = 1): Worker {
    const began = performance.now()
    let ready = false
    const worker = cluster.fork({ [WORKER_NUMBER]: String(number) })
    const closeUnclaimed = trackConnections(worker)
    this.#workers.set(number, worker)
    worker.on('error', (err) => this.#options.log.debug({ err, worker: number }, 'a message to a worker was lost'))
    const answers = new Batch<ToWorker>((messages) => {
      if (worker.isConnected()) worker.send(messages)
    })
    this.#batches.set(worker, answers)
    const receive = (message: FromWorker) => {
      if (message.kind === 'question') void this.#answer(worker, answers, message)
      else if (message.kind === 'release') this.#options.release(message.lease)
      else if (message.kind === 'signal') this.broadcast(message.text, worker)
      else if (message.kind === 'stepped') this.#steps.done(message)
      else if (message.kind === 'metrics') {
        if (!worker.isDead()) this.#metrics.received(worker.id, message.id, message.families)
      } else {
        ready = true
        onReady?.(message.url)
        // A worker that was starting has not heard the first one.
        if (this.#stopping) this.#send(worker, { kind: 'stop' })
      }
    }
    worker.on('message', (messages: readonly FromWorker[]) => messages.forEach(receive))
    worker.on('exit', (code, signal) => {
      this.#workers.delete(number)
      closeUnclaimed()
      this.#steps.gone(worker)
      this.#configured.delete(worker.id)
      this.#options.ended(worker.id)
      void this.#metrics.ended(worker.id)
      const death = { code, signal }
      if (!ready && onStillborn) return onStillborn(death)
      if (this.#stopping) return
      const next = performance.now() - began > STEADY_MS ? 1 : attempt + 1
      const pause = pauseAfter(attempt, BACKOFF)
      this.#options.log.error({ worker: number, ...death, reason: reasonOf(death), pauseMs: pause }, DIED)
      this.#restarts.set(
        number,
        setTimeout(() => this.#fork(number, {}, next), pause),
      )
    })
    return worker
  }

  async #answer(
    worker: Worker,
    answers: Batch<ToWorker>,
    { id, name, args }: FromWorker & { kind: 'question' },
  ): Promise<void> {
    // The questions of a dead worker may arrive after its end.
    if (worker.isDead()) return
    try {
      answers.add({ kind: 'answer', id, value: await this.#options.answer(name, args, worker.id) })
    } catch (error) {
      answers.add({ kind: 'answer', id, error: (error as Error).message })
    }
  }

  #send(worker: Worker, message: ToWorker): void {
    this.#batches.get(worker)?.sendNow(message)
  }
}

const DIED = 'a worker has died; starting another'

/** How a process has ended, as the event `exit` of a worker has it. */
interface Death {
  readonly code: number | null
  readonly signal: string | null
}

interface Expected {
  readonly onReady?: (url: string) => void
  readonly onStillborn?: (death: Death) => void
}

function reasonOf({ code, signal }: Death): string {
  if (signal === null) return `it ended with exit code ${code}, and its last lines say why`
  if (signal === 'SIGKILL') return 'SIGKILL ended it, which the system sends when memory runs out'
  return `${signal} ended it`
}

/** A connection that this process has accepted and sends to a worker. */
interface Handle {
  /** -1 once it is closed here, because the worker has it. */
  readonly fd: number
  close(): void
}

/** Number of connections at which those are forgotten that workers have taken. */
const MAX_UNCHECKED = 64

/**
 * Remembers the connections that are on the way to a worker. Node (lib/internal/cluster/round_robin_handle.js) keeps
 * each open until the worker confirms that it has it: if the worker dies before that, the client waits in vain.
 * @returns closes those of a worker that has died, so that their clients try again
 */
function trackConnections({ process: child }: Pick<Worker, 'process'>): () => void {
  const under = new Set<Handle>()
  const { send } = child
  let dead = false
  child.send = (...args: unknown[]) => {
    const [, handle] = args
    if (isConnection(handle)) {
      if (dead) setImmediate(() => handle.close())
      if (under.size >= MAX_UNCHECKED) for (const old of under) if (old.fd === -1) under.delete(old)
      under.add(handle)
    }
    return Reflect.apply(send, child, args)
  }
  return () => {
    dead = true
    for (const handle of under) if (handle.fd !== -1) handle.close()
    under.clear()
  }
}

function isConnection(value: unknown): value is Handle {
  return typeof value === 'object' && value !== null && 'fd' in value && 'close' in value
}

class Steps {
  readonly #waiting = new Map<number, Waiting>()
  readonly #send: (worker: Worker, message: ToWorker) => void
  #last = 0

  constructor(send: (worker: Worker, message: ToWorker) => void) {
    this.#send = send
  }

  /** Has these workers prepare a configuration. If one cannot, none keeps it, and this rejects. */
  async prepareAll(workers: readonly Worker[], config: Config): Promise<PreparedReload> {
    const all = (step: ReloadStep) => Promise.allSettled(workers.map((worker) => this.#take(worker, step)))
    const outcomes = await all({ kind: 'prepare', config })
    const discard = async () => {
      await all({ kind: 'discard' })
    }
    const failed = outcomes.find((outcome) => outcome.status === 'rejected')
    if (failed) {
      await discard()
      throw failed.reason
    }
    return {
      async apply() {
        const applied = await all({ kind: 'apply' })
        // The one that is started in its place asks for the configuration in use.
        for (const [i, { status }] of applied.entries()) if (status === 'rejected') workers[i]?.process.kill('SIGKILL')
      },
      discard,
    }
  }

  done({ id, error }: FromWorker & { kind: 'stepped' }): void {
    const waiting = this.#waiting.get(id)
    this.#waiting.delete(id)
    if (error === undefined) waiting?.resolve()
    else waiting?.reject(new Failure(error))
  }

  /** A worker that dies needs no more steps: the one after it asks for the configuration in use. */
  gone(worker: Worker): void {
    for (const [id, waiting] of this.#waiting) {
      if (waiting.worker !== worker) continue
      this.#waiting.delete(id)
      waiting.resolve()
    }
  }

  #take(worker: Worker, step: ReloadStep): Promise<void> {
    if (!worker.isConnected()) return Promise.resolve()
    const id = ++this.#last
    const taken = new Promise<void>((resolve, reject) => this.#waiting.set(id, { worker, resolve, reject }))
    this.#send(worker, { kind: 'step', id, step })
    return withinDeadline(taken, MAX_STEP_MS)
  }
}

/** Longest time for a step in one worker, ms. */
const MAX_STEP_MS = 120_000

interface Waiting {
  readonly worker: Worker
  resolve(): void
  reject(error: Error): void
}
