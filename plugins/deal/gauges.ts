import { countByState, type PluginGauge, spendGauges } from 'dealgate'
import type { DealParts } from './parts.js'

/** Deals by state, and what they cost today. */
export function dealGauges(parts: DealParts): readonly PluginGauge[] {
  const { maxSpendPerDay } = parts.options
  return [
    {
      name: 'deals',
      help: 'Deals that are not closed, by the state that the network last reported.',
      read: () => countByState(parts.deals.open(), ({ live }) => live?.state ?? 'Unknown'),
    },
    ...spendGauges(parts.spending, maxSpendPerDay),
  ]
}
