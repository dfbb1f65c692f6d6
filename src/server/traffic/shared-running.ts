import { randomUUID } from 'node:crypto'
import { parseJson } from '../../../common/json.js'
import type { Signals } from '../../api/state.js'
import { DueClients } from './gate.js'

/** Time for which changes are collected, ms. */
const COLLECTED_MS = 20
/** Others hear of a client when it has this part of its bound in progress here. */
const SHARE = 1 / 8
/** Interval at which what is still in progress is reported again, ms: messages may be lost. */
const AGAIN_MS = 3000
/** Age at which what another process has reported is forgotten, ms: it may be gone. */
const FORGOTTEN_MS = 10_000
/** Most clients of other processes that are remembered. */
const MAX_CLIENTS = 10_000

interface Elsewhere {
  /** Kept when it is 0, too: an earlier message may arrive later. */
  readonly running: number
  /** Number of the message that reported it. */
  readonly message: number
  /** End of the time for which the message counts, by the clock of this process, ms. */
  readonly until: number
}

/**
 * Sends the number of requests of a client that are in progress here to the other processes on the same state, and
 * receives theirs. Messages have the number itself, and not its change: a lost one matters until the next.
 */
export class SharedRunning {
  readonly #process = randomUUID().slice(0, 8)
  readonly #signals: Signals
  readonly #clock: () => number
  /** What is in progress here, of clients that the others know of or will hear about. */
  readonly #here = new Map<string, number>()
  readonly #reported = new Map<string, number>()
  /** Requests of clients at other processes, by client and then by process. */
  readonly #elsewhere = new Map<string, Map<string, Elsewhere>>()
  readonly #due: DueClients
  /** Clients that are due because the others may have missed what was reported. */
  readonly #repeated = new Set<string>()
  readonly #again: NodeJS.Timeout
  readonly #stop: () => void
  #messages = 0

  /** @param clock monotonic, ms */
  constructor(signals: Signals, clock: () => number) {
    this.#signals = signals
    this.#clock = clock
    this.#due = new DueClients(COLLECTED_MS, (clients) => this.#send(clients))
    this.#again = setInterval(() => this.repeat(), AGAIN_MS).unref()
    this.#stop = signals.on('running', (text) => this.#hear(text))
  }

  /**
   * @param client with its kind, such as `key AKIA…`, without line breaks
   * @param running requests of the client that are in progress here
   * @param concurrency its bound; undefined for none
   */
  changed(client: string, running: number, concurrency: number | undefined): void {
    const reported = this.#reported.get(client) ?? 0
    const share = concurrency === undefined ? Number.POSITIVE_INFINITY : concurrency * SHARE
    const shown = running >= share || (reported > 0 && running > 0 && concurrency !== undefined) ? running : 0
    if (shown === reported) {
      if (!this.#repeated.has(client)) this.#due.delete(client)
      if (reported === 0) this.#here.delete(client)
      else this.#here.set(client, shown)
      return
    }
    this.#here.set(client, shown)
    this.#due.add(client)
  }

  /** Requests of the client that are in progress in other processes. */
  elsewhere(client: string): number {
    const processes = this.#elsewhere.get(client)
    if (!processes) return 0
    const now = this.#clock()
    let sum = 0
    for (const { running, until } of processes.values()) if (now < until) sum += running
    return sum
  }

  /** Repeats what is in progress, and forgets what others have not repeated. */
  repeat(): void {
    for (const client of this.#reported.keys()) {
      this.#repeated.add(client)
      this.#due.add(client)
    }
    const now = this.#clock()
    for (const [client, processes] of this.#elsewhere) {
      for (const [process, { until }] of processes) if (now >= until) processes.delete(process)
      if (processes.size === 0) this.#elsewhere.delete(client)
    }
  }

  /** Tells the others that nothing is in progress here any more. */
  close(): void {
    this.#stop()
    this.#due.close()
    clearInterval(this.#again)
    this.#here.clear()
    for (const client of this.#reported.keys()) this.#send([client])
  }

  #send(clients: readonly string[]): void {
    const numbers = clients.map((client) => [client, this.#here.get(client) ?? 0] as const)
    for (const [client, running] of numbers) {
      this.#repeated.delete(client)
      if (running > 0) this.#reported.set(client, running)
      else {
        this.#reported.delete(client)
        this.#here.delete(client)
      }
    }
    this.#signals.send('running', JSON.stringify([this.#process, ++this.#messages, numbers]))
  }

  #hear(text: string): void {
    const { process, message, numbers } = readMessage(text)
    const until = this.#clock() + FORGOTTEN_MS
    for (const [client, running] of numbers) {
      const processes = this.#elsewhere.get(client) ?? new Map<string, Elsewhere>()
      // PostgreSQL has several connections for sending: they keep no order.
      if (message > (processes.get(process)?.message ?? 0)) processes.set(process, { running, message, until })
      this.#elsewhere.delete(client)
      this.#elsewhere.set(client, processes)
    }
    for (const oldest of this.#elsewhere.keys()) {
      if (this.#elsewhere.size <= MAX_CLIENTS) break
      this.#elsewhere.delete(oldest)
    }
  }
}

interface Message {
  readonly process: string
  /** Its number among those of the process, from 1. */
  readonly message: number
  readonly numbers: readonly (readonly [client: string, running: number])[]
}

/** Other versions of this program may send something else. */
function readMessage(text: string): Message {
  const read = parseJson(text)
  if (!Array.isArray(read)) return NOTHING
  const [process, message, all] = read
  if (typeof process !== 'string' || !Number.isSafeInteger(message) || !Array.isArray(all)) return NOTHING
  const numbers = all.filter(
    (entry): entry is [string, number] =>
      Array.isArray(entry) && typeof entry[0] === 'string' && Number.isSafeInteger(entry[1]),
  )
  return { process, message, numbers }
}

const NOTHING: Message = { process: '', message: 0, numbers: [] }
