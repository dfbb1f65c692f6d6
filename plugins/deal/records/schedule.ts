import type { DealRecord } from './deal-record.js'

/**
 * Active deals change rarely. Longest pause between two queries of an active deal, ms, and the least number of queries
 * in its life and in its last part.
 */
const ACTIVE_MS = 6 * 3_600_000
const LOOKS_IN_LIFE = 20
const LOOKS_AT_END = 8
/** Fraction of a deal's life that counts as its last part. */
const END = 1 / 10

/**
 * When the last `days` days of a deal begin, or the last part of its life if that is shorter, ms since 1970. Undefined
 * while the end is not known.
 */
export function endBegins({ live }: DealRecord, days: number): number | undefined {
  if (live?.expires === undefined || live.lasts === undefined) return undefined
  return live.expires - Math.min(days * 86_400_000, live.lasts * END)
}

/** True when the state of the deal is to be queried at `now`, ms since 1970. */
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
