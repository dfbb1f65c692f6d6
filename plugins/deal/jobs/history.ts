import { parseAmount } from '../amounts.js'
import type { HistoryEntry } from '../deal-client.js'
import type { GatewayDeal } from '../deal-wire.js'
import type { DealTerms } from '../terms.js'

/** Deals of a history that were made on just these terms, oldest first. */
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
