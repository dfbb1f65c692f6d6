import { countByState, type PluginGauge, spendGauges } from 'dealgate'
import type { PayParts } from './parts.js'

/** Uploads to be paid that were made through this server, and what they cost today. */
export function payGauges(parts: PayParts): readonly PluginGauge[] {
  return [
    {
      name: 'uploads',
      help: 'Uploads that were made through this server, by the state that the service told then.',
      read: () => countByState(parts.made.all(), ({ status }) => status ?? 'Unknown'),
    },
    ...spendGauges(parts.ledger, parts.options.maxSpendPerDay),
  ]
}
