import { z } from 'zod'
import { S3Error } from '../../../common/errors/s3-error.js'
import type { Logger } from '../../../common/log.js'
import { PeriodicTask, withinDeadline } from '../../../common/time.js'
import type { Records, State } from '../../api/state.js'
import { defineCall } from '../../plugins/calls/define-call.js'
import type { AccessEntry } from '../access-log.js'

const INTERVAL_MS = 5 * 60_000
/** One day. */
const INTERVALS = 288
/** How often a process adds what it has counted to the records, ms. */
const ADD_EVERY_MS = 60_000
/** Longest wait for that when the server stops, ms. */
const MAX_LAST_ADD_MS = 1000

/** What load balancers ask every few seconds. */
const PROBES = new Set(['Live', 'Ready'])

interface Counts {
  readonly requests: number
  readonly clientErrors: number
  readonly serverErrors: number
  readonly bytesIn: number
  readonly bytesOut: number
}

/** Its key is the number of the interval modulo one day, so that no record has to be removed. */
interface IntervalRecord extends Counts {
  /** Start, in intervals since 1970. */
  readonly interval: number
}

const NONE: Counts = { requests: 0, clientErrors: 0, serverErrors: 0, bytesIn: 0, bytesOut: 0 }

function sum(one: Counts, other: Counts): Counts {
  return {
    requests: one.requests + other.requests,
    clientErrors: one.clientErrors + other.clientErrors,
    serverErrors: one.serverErrors + other.serverErrors,
    bytesIn: one.bytesIn + other.bytesIn,
    bytesOut: one.bytesOut + other.bytesOut,
  }
}

/**
 * Counts the requests of the last day in intervals of five minutes. Every process on the state adds its counts to the
 * same records once a minute; what one has not added when it is killed is lost.
 */
export class Activity {
  readonly #now: () => number
  readonly #log: Logger
  readonly #records: Records<IntervalRecord>
  readonly #adding = new PeriodicTask(
    () => this.#add(),
    (err) => this.#log.debug({ err }, 'the activity cannot be recorded now'),
  )
  /** What is not in the records yet, by interval. */
  readonly #counted = new Map<number, Counts>()

  /** @param now ms since 1970 */
  constructor(state: Pick<State, 'records'>, log: Logger, now: () => number) {
    this.#now = now
    this.#log = log
    this.#records = state.records('activity')
  }

  start(): void {
    this.#adding.start(ADD_EVERY_MS)
  }

  count({ operation, status, bytesIn, bytesOut }: AccessEntry): void {
    if (PROBES.has(operation)) return
    const failed = { clientErrors: Number(status >= 400 && status < 500), serverErrors: Number(status >= 500) }
    this.#countIn(this.#interval(), { requests: 1, ...failed, bytesIn, bytesOut })
  }

  /** The intervals of the last day that had requests, in order. Throws S3Error ServiceUnavailable. */
  async lastDay(): Promise<readonly IntervalRecord[]> {
    await this.#add()
    const first = this.#interval() - INTERVALS + 1
    const found: IntervalRecord[] = []
    for await (const [, record] of this.#records.entries()) if (record.interval >= first) found.push(record)
    return found.sort((one, other) => one.interval - other.interval)
  }

  async stop(): Promise<void> {
    this.#adding.stopTimer()
    await withinDeadline(
      this.#adding.stop().then(() => this.#add()),
      MAX_LAST_ADD_MS,
    ).catch(() => {})
  }

  #interval(): number {
    return Math.floor(this.#now() / INTERVAL_MS)
  }

  #countIn(interval: number, counts: Counts): void {
    this.#counted.set(interval, sum(this.#counted.get(interval) ?? NONE, counts))
  }

  async #add(): Promise<void> {
    const oldest = this.#interval() - INTERVALS
    // A copy: a request that ends meanwhile would be met in the same run, and a busy server would never end it.
    for (const [interval, counts] of [...this.#counted]) {
      this.#counted.delete(interval)
      if (interval <= oldest) continue
      try {
        await this.#records.change(String(interval % INTERVALS), (kept) => {
          if (kept && kept.interval > interval) return kept
          return { interval, ...(kept?.interval === interval ? sum(kept, counts) : counts) }
        })
      } catch (error) {
        this.#countIn(interval, counts)
        throw error
      }
    }
  }
}

/** @param activity called when a client asks */
export function activityCall(activity: () => Pick<Activity, 'lastDay'>) {
  return defineCall({
    name: 'GetActivity',
    source: 'docs/observability.md#activity',
    summary:
      'Requests, errors and bytes of the last 24 hours, in intervals of five minutes, of all proxies on the state.',
    access: 'signed',
    on: { method: 'GET', resource: 'service', path: '/-/activity/v1' },
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
          }),
        )
        .meta({ element: 'Interval' })
        .describe('Those that had requests, the oldest first.'),
    }),
    async answer(_, { caller }) {
      if (caller?.identity.account) {
        throw new S3Error('AccessDenied', {
          message: 'Only key pairs of the account of the server itself may read its activity.',
        })
      }
      const intervals = await activity().lastDay()
      return {
        IntervalSeconds: INTERVAL_MS / 1000,
        Intervals: intervals.map(({ interval, ...counts }) => ({
          Start: new Date(interval * INTERVAL_MS).toISOString(),
          Requests: counts.requests,
          ClientErrors: counts.clientErrors,
          ServerErrors: counts.serverErrors,
          BytesIn: counts.bytesIn,
          BytesOut: counts.bytesOut,
        })),
      }
    },
  })
}
