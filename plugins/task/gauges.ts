import { countByState, type PluginGauge, spendGauges } from 'dealgate'
import type { TaskParts } from './parts.js'

/** Tasks that were created through this server, and what they may cost today. */
export function taskGauges(parts: TaskParts): readonly PluginGauge[] {
  return [
    {
      name: 'tasks',
      help: 'Tasks that were created through this server: `Created` ones have a UUID, `Unnamed` ones not yet.',
      read: () => countByState(parts.made.all(), ({ uuid }) => (uuid === undefined ? 'Unnamed' : 'Created')),
    },
    ...spendGauges(parts.ledger, parts.options.maxSpendPerDay),
  ]
}
