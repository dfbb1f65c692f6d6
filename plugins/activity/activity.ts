import { type EndedRequest, PeriodicTask, type PluginHost, withinDeadline } from 'dealgate/plugin'
import { addTo, timeClass } from './counts.js'
import { type IntervalRecord, PERIODS, type Period, Series } from './series.js'

/** How often a process adds what it has counted to the records, ms. */
const ADD_EVERY_MS = 60_000
/** Longest wait for that when the server stops, ms. */
const MAX_LAST_ADD_MS = 1000

/** What load balancers ask every few seconds. */
const PROBES = new Set(['Live', 'Ready'])

/**
 * Counts the requests of the last day in intervals of five minutes, and those of 31 days by hours, with what is stored
 * then. Every process on the state adds its counts to the same records once a minute; what one has not added when it
 * is killed is lost.
 */
export class Activity {
  readonly #host: PluginHost
  readonly #day: Series
  readonly #month: Series
  readonly #adding = new PeriodicTask(
    () => this.#add(),
    (err) => this.#host.log.debug({ err }, 'the activity cannot be recorded now'),
  )
  /** The last sample, and the start of its hour, in hours since 1970. */
  #sampled: { readonly hour: number; readonly taken: Promise<void> } | undefined

  #added: Promise<void> = Promise.resolve()
  /** The first run is that of the start, which asks the gateway nothing that no client wants. */
  #isStarting = true

  constructor(host: PluginHost) {
    this.#host = host
    this.#day = new Series(host.state, PERIODS.day)
    this.#month = new Series(host.state, PERIODS.month)
  }

  start(): void {
    this.#adding.start(ADD_EVERY_MS)
  }

  count({ operation, status, bytesIn, bytesOut, ms }: EndedRequest): void {
    if (PROBES.has(operation)) return
    const counts = this.#day.at(this.#host.now())
    counts.requests++
    if (status >= 500) counts.serverErrors++
    else if (status >= 400) counts.clientErrors++
    counts.bytesIn += bytesIn
    counts.bytesOut += bytesOut
    const { times = {} } = counts
    const number = timeClass(ms)
    times[number] = (times[number] ?? 0) + 1
  }

  /** The intervals of the last day that had requests, or the hours of 31 days, in order. Throws ServiceUnavailable. */
  async last(period: Period): Promise<readonly IntervalRecord[]> {
    await this.#add()
    return (period === 'day' ? this.#day : this.#month).read(this.#host.now())
  }

  async stop(): Promise<void> {
    this.#adding.stopTimer()
    await withinDeadline(
      this.#adding.stop().then(() => this.#addCounts()),
      MAX_LAST_ADD_MS,
    ).catch(() => {})
  }

  async #add(): Promise<void> {
    const samples = !this.#isStarting
    this.#isStarting = false
    if (samples) await this.#takeSample()
    await this.#addCounts()
  }

  /** One after the other: who reads the records then must find what another run has taken and not added yet. */
  #addCounts(): Promise<void> {
    this.#added = this.#added.catch(() => {}).then(() => this.#addNow())
    return this.#added
  }

  async #addNow(): Promise<void> {
    const now = this.#host.now()
    await this.#day.add(now, (start, counts) => addTo(this.#month.at(start), counts))
    await this.#month.add(now)
  }

  /** Each process asks once an hour. */
  #takeSample(): Promise<void> {
    const now = this.#host.now()
    const hour = Math.floor(now / PERIODS.month.ms)
    if (this.#sampled?.hour !== hour) this.#sampled = { hour, taken: this.#sampleAt(now) }
    return this.#sampled.taken
  }

  async #sampleAt(time: number): Promise<void> {
    const sample = await this.#host.storage()
    // What was counted before may have been added meanwhile.
    Object.assign(this.#month.at(time), sample)
  }
}
