import type { DealRecord } from '../records/deal-record.js'

/** A deal that is active stays so for months: so long until it is asked for again, ms, unless it ends before. */
const ACTIVE_MS = 6 * 3_600_000

/** Whether the network is to be asked for the state of the deal at `now`, ms since 1970. */
export function isDue({ live }: DealRecord, now: number): boolean {
  if (live?.state !== 'StorageDealActive') return true
  return now >= Math.min(live.asked + ACTIVE_MS, live.expires ?? Number.POSITIVE_INFINITY)
}
