import { networkOf } from '../../common/cidr.js'
import { Running } from '../../common/running.js'

interface DownloadBounds {
  /** Most bytes that wait for clients, for all downloads and for those of one network of clients. */
  readonly total: number
  readonly perClient: number
}

const BOUNDS: DownloadBounds = { total: 64 * 1024 * 1024, perClient: 32 * 1024 * 1024 }

/** Below this rate a download is slow, bytes/s. */
const MIN_RATE = 16 * 1024

/** The rate is that of the last time of this length or longer, ms; a download ends for its rate after one at least. */
const PERIOD_MS = 15_000

/**
 * Bounds the bytes that have been read for clients and that they have not taken. Over a bound, the downloads below the
 * minimum rate end, the slowest first, and the oldest of equally slow ones; a client that reads slowly while there is
 * room goes on.
 */
export class Downloads {
  readonly #bounds: DownloadBounds
  readonly #clock: () => number
  readonly #running = new Running<RunningDownload>()
  readonly #ofClients = new Map<string, number>()
  #queued = 0
  /** Time before which no download can have become slow. */
  #nextLook = Number.NEGATIVE_INFINITY

  /** @param clock monotonic, ms */
  constructor(bounds = BOUNDS, clock: () => number = () => performance.now()) {
    this.#bounds = bounds
    this.#clock = clock
  }

  /** Bytes that wait for clients. */
  get queued(): number {
    return this.#queued
  }

  /** @param end cuts the connection of the client */
  begin(address: string, end: () => void): RunningDownload {
    const client = networkOf(address)
    const id = this.#running.newId()
    const download = new RunningDownload(client, end, this.#clock, {
      queued: (bytes) => this.#count(client, bytes),
      over: () => this.#running.remove(id),
    })
    this.#running.put(id, download)
    return download
  }

  #count(client: string, bytes: number): void {
    this.#queued += bytes
    const ofClient = (this.#ofClients.get(client) ?? 0) + bytes
    if (ofClient === 0) this.#ofClients.delete(client)
    else this.#ofClients.set(client, ofClient)
    const { total, perClient } = this.#bounds
    if (bytes <= 0 || (this.#queued <= total && ofClient <= perClient) || this.#clock() < this.#nextLook) return
    this.#relieve()
  }

  /** Ends slow downloads until the bytes are within the bounds again. */
  #relieve(): void {
    const now = this.#clock()
    this.#nextLook = now + PERIOD_MS / 15
    const slow = this.#running
      .all()
      .map((download) => ({ download, rate: download.rate(now) }))
      .filter(({ rate }) => rate < MIN_RATE)
      .sort((one, other) => one.rate - other.rate || one.download.begun - other.download.begun)
    for (const { download } of slow) {
      const isOver = this.#queued > this.#bounds.total
      if (isOver || (this.#ofClients.get(download.client) ?? 0) > this.#bounds.perClient) download.cut()
    }
  }
}

/** Counts one more download for the client of a request; `cut` ends its connection. */
export type BeginDownload = (cut: () => void) => RunningDownload

interface Counting {
  queued(bytes: number): void
  over(): void
}

/** One download on its way to its client. */
class RunningDownload {
  readonly client: string
  readonly begun: number
  readonly #cut: () => void
  readonly #clock: () => number
  readonly #counting: Counting
  #queued = 0
  #taken = 0
  /** Bytes that had been taken at a time, and the rate until then. */
  #mark: { readonly at: number; readonly taken: number; readonly rate: number }
  #over = false

  constructor(client: string, cut: () => void, clock: () => number, counting: Counting) {
    this.client = client
    this.#cut = cut
    this.#clock = clock
    this.#counting = counting
    this.begun = clock()
    this.#mark = { at: this.begun, taken: 0, rate: Number.POSITIVE_INFINITY }
  }

  /** Bytes are on their way to the client. */
  queue(bytes: number): void {
    this.#queued += bytes
    this.#counting.queued(bytes)
  }

  /** The client has taken bytes. */
  take(bytes: number): void {
    if (this.#over) return
    this.#queued -= bytes
    this.#taken += bytes
    this.#counting.queued(-bytes)
    const now = this.#clock()
    if (now - this.#mark.at >= PERIOD_MS) this.#mark = { at: now, taken: this.#taken, rate: this.#since(now) }
  }

  /** Bytes/s of the last period. */
  rate(now: number): number {
    return now - this.#mark.at < PERIOD_MS ? this.#mark.rate : this.#since(now)
  }

  #since(now: number): number {
    return ((this.#taken - this.#mark.taken) * 1000) / (now - this.#mark.at)
  }

  cut(): void {
    this.leave()
    this.#cut()
  }

  /** Nothing waits for the client any more. */
  leave(): void {
    if (this.#over) return
    this.#over = true
    this.#counting.over()
    this.#counting.queued(-this.#queued)
    this.#queued = 0
  }
}
