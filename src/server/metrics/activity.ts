import { z } from 'zod'
import { S3Error } from '../../../common/errors/s3-error.js'
import type { Logger } from '../../../common/log.js'
import { PeriodicTask, withinDeadline } from '../../../common/time.js'
import type { Records, State } from '../../api/state.js'
import { defineCall } from '../../plugins/calls/define-call.js'
import type { AccessEntry } from '../access-log.js'

/** How often a process adds what it has counted to the records, ms. */
const ADD_EVERY_MS = 60_000
/** Longest wait for that when the server stops, ms. */
const MAX_LAST_ADD_MS = 1000

/** What is kept: intervals of a length, and how many of them. A record for each, so that none has to be removed. */
const PERIODS = {
  day: { records: 'activity', ms: 5 * 60_000, count: 288 },
  month: { records: 'activity-hours', ms: 3_600_000, count: 31 * 24 },
} as const

type Period = keyof typeof PERIODS

/** What load balancers ask every few seconds. */
const PROBES = new Set(['Live', 'Ready'])

/** What there was at a time of an interval. Absent where it is not known. */
export interface StorageSample {
  /** Of the disk of the data folder. */
  freeBytes?: number
  /** Of the account of the server, at the gateway. */
  storedBytes?: number
}

interface Counts extends StorageSample {
  requests: number
  clientErrors: number
  serverErrors: number
  bytesIn: number
  bytesOut: number
  /** Requests by their time: see `timeClass`. Absent in records of earlier versions. */
  times?: Record<number, number>
}

/** Its key is the number of the interval modulo those of the period. */
interface IntervalRecord extends Readonly<Counts> {
  /** Start, in intervals since 1970. */
  readonly interval: number
}

const none = (): Counts => ({ requests: 0, clientErrors: 0, serverErrors: 0, bytesIn: 0, bytesOut: 0, times: {} })

/** Four classes of times for each doubling, from 1/4 ms to 65 s: a quantile is at most 19 % too high. */
const CLASSES = 4
const BELOW_ONE_MS = 2 * CLASSES
const LAST_CLASS = BELOW_ONE_MS + 16 * CLASSES

function timeClass(ms: number): number {
  return Math.min(LAST_CLASS, Math.max(0, BELOW_ONE_MS + Math.ceil(CLASSES * Math.log2(ms))))
}

/** The time, ms, within which this share of the requests was answered; undefined without any. */
function quantile(times: Counts['times'] = {}, share: number): number | undefined {
  const counts = Object.entries(times).map(([name, count]) => [Number(name), count] as const)
  let left = share * counts.reduce((sum, [, count]) => sum + count, 0)
  for (const [number, count] of counts.sort(([one], [other]) => one - other)) {
    left -= count
    if (left <= 0) return Number((2 ** ((number - BELOW_ONE_MS) / CLASSES)).toPrecision(3))
  }
  return undefined
}

function addTo(counts: Counts, { times = {}, ...more }: Readonly<Counts>): Counts {
  const { requests, clientErrors, serverErrors, bytesIn, bytesOut, ...sample } = more
  counts.requests += requests
  counts.clientErrors += clientErrors
  counts.serverErrors += serverErrors
  counts.bytesIn += bytesIn
  counts.bytesOut += bytesOut
  const all = { ...counts.times }
  for (const [name, count] of Object.entries(times)) all[Number(name)] = (all[Number(name)] ?? 0) + count
  return Object.assign(counts, sample, { times: all })
}

/** The intervals of one period. */
class Series {
  readonly #records: Records<IntervalRecord>
  readonly #period: (typeof PERIODS)[Period]
  /** What is not in the records yet, by interval. */
  readonly #counted = new Map<number, Counts>()

  constructor(state: Pick<State, 'records'>, period: (typeof PERIODS)[Period]) {
    this.#records = state.records(period.records)
    this.#period = period
  }

  /** What this process counts at that time, ms since 1970, until `add`. */
  at(time: number): Counts {
    const interval = Math.floor(time / this.#period.ms)
    const found = this.#counted.get(interval)
    if (found) return found
    const counts = none()
    this.#counted.set(interval, counts)
    return counts
  }

  /**
   * Adds to the records what was counted.
   * @param added gets each that is there now, with the start of its interval, ms since 1970
   */
  async add(now: number, added: (start: number, counts: Readonly<Counts>) => void = () => {}): Promise<void> {
    const { count, ms } = this.#period
    const oldest = Math.floor(now / ms) - count
    // A copy: a request that ends meanwhile would be met in the same run, and a busy server would never end it.
    for (const [interval, counts] of [...this.#counted]) {
      this.#counted.delete(interval)
      if (interval <= oldest) continue
      try {
        await this.#records.change(String(interval % count), (kept) => {
          if (kept && kept.interval > interval) return kept
          return { interval, ...addTo(kept?.interval === interval ? withoutInterval(kept) : none(), counts) }
        })
      } catch (error) {
        addTo(this.at(interval * ms), counts)
        throw error
      }
      added(interval * ms, counts)
    }
  }

  /** The records of the period until now that were counted, in order. */
  async read(now: number): Promise<readonly IntervalRecord[]> {
    const first = Math.floor(now / this.#period.ms) - this.#period.count + 1
    const found: IntervalRecord[] = []
    for await (const [, record] of this.#records.entries()) if (record.interval >= first) found.push(record)
    return found.sort((one, other) => one.interval - other.interval)
  }
}

function withoutInterval({ interval: _, ...counts }: IntervalRecord): Counts {
  return { ...counts }
}

interface ActivityOptions {
  /** ms since 1970 */
  readonly now: () => number
  /** What is stored at the moment: asked by each process once an hour. */
  readonly sample: () => Promise<StorageSample>
}

/**
 * Counts the requests of the last day in intervals of five minutes, and those of 31 days by hours, with what is stored
 * then. Every process on the state adds its counts to the same records once a minute; what one has not added when it
 * is killed is lost.
 */
export class Activity {
  readonly #options: ActivityOptions
  readonly #log: Logger
  readonly #day: Series
  readonly #month: Series
  readonly #adding = new PeriodicTask(
    () => this.#add(),
    (err) => this.#log.debug({ err }, 'the activity cannot be recorded now'),
  )
  /** Start of the hour of the last sample, in hours since 1970. */
  #sampled: number | undefined

  constructor(state: Pick<State, 'records'>, log: Logger, options: ActivityOptions) {
    this.#options = options
    this.#log = log
    this.#day = new Series(state, PERIODS.day)
    this.#month = new Series(state, PERIODS.month)
  }

  start(): void {
    this.#adding.start(ADD_EVERY_MS)
  }

  count({ operation, status, bytesIn, bytesOut, ms }: AccessEntry): void {
    if (PROBES.has(operation)) return
    const counts = this.#day.at(this.#options.now())
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
    return (period === 'day' ? this.#day : this.#month).read(this.#options.now())
  }

  async stop(): Promise<void> {
    this.#adding.stopTimer()
    await withinDeadline(
      this.#adding.stop().then(() => this.#addCounts()),
      MAX_LAST_ADD_MS,
    ).catch(() => {})
  }

  async #add(): Promise<void> {
    await this.#takeSample()
    await this.#addCounts()
  }

  async #addCounts(): Promise<void> {
    const now = this.#options.now()
    await this.#day.add(now, (start, counts) => addTo(this.#month.at(start), counts))
    await this.#month.add(now)
  }

  async #takeSample(): Promise<void> {
    const now = this.#options.now()
    const hour = Math.floor(now / PERIODS.month.ms)
    if (this.#sampled === hour) return
    this.#sampled = hour
    Object.assign(this.#month.at(now), await this.#options.sample())
  }
}

/** @param activity called when a client asks */
export function activityCall(activity: () => Pick<Activity, 'last'>) {
  return defineCall({
    name: 'GetActivity',
    source: 'docs/observability.md#activity',
    summary:
      'Requests, errors, bytes and times of the last 24 hours in intervals of five minutes, or of 31 days by the hour, of all proxies on the state.',
    access: 'signed',
    on: { method: 'GET', resource: 'service', path: '/-/activity/v1' },
    query: z.strictObject({
      period: z.enum(['day', 'month']).optional().describe('`day`, the default: five minutes each. `month`: hours.'),
    }),
    result: z.object({
      IntervalSeconds: z.int(),
      Intervals: z
        .array(
          z.object({
            Start: z.iso.datetime(),
            Requests: z.int().describe('Without those of /-/live and /-/ready.'),
            ClientErrors: z.int().describe('Answers with status 400 to 499.'),
            ServerErrors: z.int().describe('Answers with status 500 and above.'),
            BytesIn: z.int().describe('Bytes of request bodies that arrived.'),
            BytesOut: z.int().describe('Bytes of response bodies that were sent.'),
            P50Milliseconds: z.number().optional().describe('Half of the requests took no longer, to within 19 %.'),
            P99Milliseconds: z.number().optional(),
            StoredBytes: z.int().optional().describe('Of the account of the server at the gateway; of hours alone.'),
            FreeBytes: z.int().optional().describe('On the disk of the data folder; of hours alone.'),
          }),
        )
        .meta({ element: 'Interval' })
        .describe('Those that had requests or a sample, the oldest first.'),
    }),
    async answer({ query: { period = 'day' } }, { caller }) {
      if (caller?.identity.account) {
        throw new S3Error('AccessDenied', {
          message: 'Only key pairs of the account of the server itself may read its activity.',
        })
      }
      const { ms } = PERIODS[period]
      return {
        IntervalSeconds: ms / 1000,
        Intervals: (await activity().last(period)).map((record) => shown(record, ms)),
      }
    },
  })
}

function shown({ interval, times, storedBytes, freeBytes, ...counts }: IntervalRecord, ms: number) {
  const [p50, p99] = [quantile(times, 0.5), quantile(times, 0.99)]
  return {
    Start: new Date(interval * ms).toISOString(),
    Requests: counts.requests,
    ClientErrors: counts.clientErrors,
    ServerErrors: counts.serverErrors,
    BytesIn: counts.bytesIn,
    BytesOut: counts.bytesOut,
    ...(p50 !== undefined && { P50Milliseconds: p50, P99Milliseconds: p99 }),
    ...(storedBytes !== undefined && { StoredBytes: storedBytes }),
    ...(freeBytes !== undefined && { FreeBytes: freeBytes }),
  }
}
