import { type Rate, TokenBuckets } from '../../../common/client-rate.js'

/** Why a client has to wait. */
export interface Wait {
  readonly seconds: number
  readonly exceeded: 'requests per second' | 'bytes per second' | 'requests at the same time'
}

/** The other processes that count together with this one. */
export interface OtherProcesses {
  /** Called with what a client takes of a rate here. */
  taken(client: string, counted: Usage, bounds: ClientBounds): void
  /** Called when the number of requests in progress here has changed. */
  changed(client: string, running: number, concurrency: number | undefined): void
  /** Requests of the client in progress there. */
  running(client: string): number
}

/** Seconds after which a client may try again that has too many requests in progress. */
const BUSY_SECONDS = 1

/** Counts the requests of clients of one kind: keys, addresses, or the whole server as one. */
export class Gate {
  #bounds: ClientBounds
  readonly #requests: TokenBuckets
  readonly #bytes: TokenBuckets
  readonly #running = new Map<string, number>()
  readonly #others: OtherProcesses | undefined

  /** @param others absent: this process counts alone */
  constructor(bounds: ClientBounds, clock: () => number, others?: OtherProcesses) {
    this.#others = others
    this.#bounds = bounds
    this.#requests = new TokenBuckets(bounds.requests ?? NONE, clock)
    this.#bytes = new TokenBuckets(bounds.bytes ?? NONE, clock)
  }

  /** Replaces the bounds. Requests in progress stay counted. */
  set bounds(bounds: ClientBounds) {
    this.#bounds = bounds
    this.#requests.rate = bounds.requests ?? NONE
    this.#bytes.rate = bounds.bytes ?? NONE
  }

  /** Undefined if the client may begin a request. Counts nothing. */
  waitOf(client: string): Wait | undefined {
    const { requests, bytes, concurrency } = this.#bounds
    if (concurrency !== undefined && this.#runningOf(client) >= concurrency)
      return { seconds: BUSY_SECONDS, exceeded: 'requests at the same time' }
    const forRequest = requests ? this.#requests.wait(client, 1) : 0
    // A client that owes nothing may begin.
    const forBytes = bytes ? this.#bytes.wait(client, 0) : 0
    const seconds = Math.max(forRequest, forBytes)
    if (seconds === 0) return undefined
    return { seconds, exceeded: forRequest >= forBytes ? 'requests per second' : 'bytes per second' }
  }

  begin(client: string): void {
    if (this.#bounds.requests) this.#take(client, { requests: 1, bytes: 0 })
    this.#setRunning(client, (this.#running.get(client) ?? 0) + 1)
  }

  /** Counts bytes; those of a request may be more than the client has left. A negative number gives bytes back. */
  charge(client: string, bytes: number): void {
    if (this.#bounds.bytes && bytes !== 0) this.#take(client, { requests: 0, bytes })
  }

  /** Counts what the client has taken in another process. */
  count(client: string, { requests, bytes }: Usage): void {
    if (this.#bounds.requests && requests !== 0) this.#requests.take(client, requests)
    if (this.#bounds.bytes && bytes !== 0) this.#bytes.take(client, bytes)
  }

  #take(client: string, counted: Usage): void {
    this.count(client, counted)
    this.#others?.taken(client, counted, this.#bounds)
  }

  end(client: string): void {
    this.#setRunning(client, (this.#running.get(client) ?? 0) - 1)
  }

  #runningOf(client: string): number {
    return (this.#running.get(client) ?? 0) + (this.#others?.running(client) ?? 0)
  }

  #setRunning(client: string, count: number): void {
    if (count > 0) this.#running.set(client, count)
    else this.#running.delete(client)
    this.#others?.changed(client, Math.max(0, count), this.#bounds.concurrency)
  }
}

const NONE = { perSecond: 1, burst: 1 }

/** Most clients of one message, which has at most 1 KiB. */
const MAX_CLIENTS_OF_MESSAGE = 5

/** Most messages at a time; the others follow. */
const MAX_MESSAGES = 50

/** Clients that other processes are to hear about: collected for a moment, a few for each message. */
export class DueClients {
  readonly #clients = new Set<string>()
  readonly #collectedMs: number
  readonly #send: (clients: readonly string[]) => void
  #timer: NodeJS.Timeout | undefined
  #closed = false

  /**
   * @param collectedMs time for which clients are collected, ms
   * @param send sends a message about at most five clients
   */
  constructor(collectedMs: number, send: (clients: readonly string[]) => void) {
    this.#collectedMs = collectedMs
    this.#send = send
  }

  add(client: string): void {
    if (this.#closed) return
    this.#clients.add(client)
    this.#timer ??= setTimeout(() => this.#run(), this.#collectedMs).unref()
  }

  delete(client: string): void {
    this.#clients.delete(client)
  }

  close(): void {
    this.#closed = true
    clearTimeout(this.#timer)
  }

  #run(): void {
    this.#timer = undefined
    const now = [...this.#clients].slice(0, MAX_MESSAGES * MAX_CLIENTS_OF_MESSAGE)
    for (const client of now) this.#clients.delete(client)
    for (let i = 0; i < now.length; i += MAX_CLIENTS_OF_MESSAGE) this.#send(now.slice(i, i + MAX_CLIENTS_OF_MESSAGE))
    const [next] = this.#clients
    if (next !== undefined) this.add(next)
  }
}

/** Bounds of the requests of one client, or of all; an absent one does not bound. */
export interface ClientBounds {
  /** Requests per second. */
  readonly requests?: Rate | undefined
  /** Bytes per second of request and response bodies together. */
  readonly bytes?: Rate | undefined
  /** Requests in progress. */
  readonly concurrency?: number | undefined
}

/** Bounds of the requests that a server takes. */
export interface TrafficBounds {
  readonly total?: ClientBounds
  /** Bounds for each network address, signed or not. IPv6 addresses count by their /64 prefix. */
  readonly perAddress?: ClientBounds
  /** Bounds for each access key; temporary ones count for their user. */
  readonly perKey?: ClientBounds
}

/** True if there is a bound. */
export function isBound({ total, perAddress, perKey }: TrafficBounds): boolean {
  return [total, perAddress, perKey].some((bounds) => Object.values(bounds ?? {}).some((bound) => bound !== undefined))
}

/** Requests and bytes of a client. */
export interface Usage {
  readonly requests: number
  readonly bytes: number
}
