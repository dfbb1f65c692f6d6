import type { DealRecord } from '../records/deal-record.js'

/** A deal that is active stays so for months: it is asked for again after so long, ms, and so many times at least in its life and in its last part. */
const ACTIVE_MS = 6 * 3_600_000
const LOOKS_IN_LIFE = 20
const LOOKS_AT_END = 8
/** The last part of a deal's life. */
const END = 1 / 10

/** When so many last days of a deal begin, ms since 1970, or the last part of its life, if that is shorter. Undefined while it is not known when it ends. */
export function endBegins({ live }: DealRecord, days: number): number | undefined {
  if (live?.expires === undefined || live.lasts === undefined) return undefined
  return live.expires - Math.min(days * 86_400_000, live.lasts * END)
}

/** Whether the network is to be asked for the state of the deal at `now`, ms since 1970. */
export function isDue(record: DealRecord, now: number, days: number): boolean {
  const { live } = record
  if (live?.state !== 'StorageDealActive') return true
  const end = endBegins(record, days)
  const { asked, expires, lasts } = live
  if (end === undefined || expires === undefined || lasts === undefined) return now >= asked + ACTIVE_MS
  if (asked >= expires) return true
  const [next, span] = asked < end ? [end, lasts / LOOKS_IN_LIFE] : [expires, (expires - end) / LOOKS_AT_END]
  return now >= Math.min(next, asked + Math.min(ACTIVE_MS, span))
}
