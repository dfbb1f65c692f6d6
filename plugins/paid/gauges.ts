import type { GaugeSample, PluginGauge } from 'dealgate/plugin'
import type { SpendLedger } from './spend-ledger.js'

/** Most records that a gauge reads: a scrape must not walk through millions. */
const MAX_READ = 10_000
/** Most states that are counted by themselves, and the length of their names: another service may state anything. */
const MAX_STATES = 20
const MAX_NAME = 64
const OTHER = 'Other'
const ATTO = 1e18

/**
 * Counts records by a state. The states beyond the first 20 count as `Other`.
 * @param records of which the first 10,000 are counted
 */
export async function countByState<T>(
  records: AsyncIterable<T>,
  stateOf: (record: T) => string,
): Promise<readonly GaugeSample[]> {
  const counts = new Map<string, number>()
  let read = 0
  for await (const record of records) {
    const stated = stateOf(record)
    const known = counts.has(stated) || (counts.size < MAX_STATES && stated.length <= MAX_NAME)
    const state = known ? stated : OTHER
    counts.set(state, (counts.get(state) ?? 0) + 1)
    if (++read >= MAX_READ) break
  }
  return [...counts].map(([state, value]) => ({ labels: { state }, value }))
}

/**
 * What is spent today (UTC) by all plugins on one ledger, and the daily cap of this one.
 * @param cap fil as a decimal number; `none` or undefined for no cap, which is no sample
 */
export function spendGauges(ledger: Pick<SpendLedger, 'spentToday'>, cap: string | undefined): readonly PluginGauge[] {
  return [
    {
      name: 'spent_today_fil',
      help: 'Spent or reserved today (UTC) by all plugins that share the ledger, in fil.',
      read: async () => [{ labels: {}, value: Number(await ledger.spentToday()) / ATTO }],
    },
    {
      name: 'spend_cap_fil',
      help: 'Daily cap of that, in fil; absent without a cap.',
      read: async () => (cap === undefined || cap === 'none' ? [] : [{ labels: {}, value: Number(cap) }]),
    },
  ]
}
