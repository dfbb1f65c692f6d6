import type { History, HistoryEntry } from '../deal-client.js'
import type { GatewayDeal } from '../deal-wire.js'
import { instantOf } from '../documents/deal-document.js'
import type { DealParts } from '../parts.js'
import type { Attempt } from '../records/attempts.js'
import { parseAmount } from '../terms/amounts.js'
import type { DealTerms } from '../terms/terms.js'

/** Largest clock difference between gateway and server, ms: the one that signatures allow. */
const SKEW_MS = 15 * 60_000

/** The deal of a history that an attempt may have made: on its terms, made since, and recorded for no other job. */
export async function unclaimed(
  { deals }: Pick<DealParts, 'deals'>,
  { entries }: Pick<History, 'entries'>,
  attempt: Attempt,
  terms: DealTerms,
): Promise<GatewayDeal | undefined> {
  for (const deal of candidates(entries ?? [], terms)) {
    if (attempt.before.includes(deal.dealCid) || !isSince(deal, attempt.sent)) continue
    const owner = await deals.get(deal.dealCid)
    if (!owner || owner.jobId === attempt.jobId) return deal
  }
  return undefined
}

/** Length of an epoch, ms: https://docs.filecoin.io/reference/general/glossary#epoch */
const EPOCH_MS = 30_000

/** The first of these deals that is on no record of this server and has not ended. */
export async function unrecorded(
  { deals, host }: Pick<DealParts, 'deals' | 'host'>,
  found: readonly GatewayDeal[],
): Promise<GatewayDeal | undefined> {
  for (const deal of found) {
    const made = instantOf(deal.timeStamp)
    const ended = made !== undefined && Number(made / 1000n) + Number(deal.duration) * EPOCH_MS < host.now()
    if (!ended && !(await deals.get(deal.dealCid))) return deal
  }
  return undefined
}

function isSince({ timeStamp }: GatewayDeal, sent: number): boolean {
  const made = instantOf(timeStamp)
  return made === undefined || Number(made / 1000n) >= sent - SKEW_MS
}

/** Deals of a history on exactly these terms, oldest first. */
export function candidates(history: readonly HistoryEntry[], terms: DealTerms): GatewayDeal[] {
  return history.flatMap(({ status, data }) =>
    data?.dealCid && status.toLowerCase() === 'success' && isOn(data, terms) ? [data] : [],
  )
}

function isOn(deal: GatewayDeal, terms: DealTerms): boolean {
  return (
    deal.minerId === terms.minerId &&
    parseAmount(deal.price) === parseAmount(terms.price) &&
    deal.duration === String(terms.duration) &&
    deal.verifiedDeal.toLowerCase() === String(terms.verifiedDeal) &&
    deal.fastRetrieval.toLowerCase() === String(terms.fastRetrieval)
  )
}
