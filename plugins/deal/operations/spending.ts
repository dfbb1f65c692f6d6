import { defineCall, formatAmount, requireOwnAccount } from 'dealgate/plugin'
import { z } from 'zod'
import type { DealDeps } from '../deps.js'
import { SOURCE } from '../subject.js'

/** What the ledger of fil has of past days: the caps of all plugins count by it. */
export function listSpending({ spending }: Pick<DealDeps, 'spending'>) {
  return defineCall({
    name: 'ListSpending',
    source: `${SOURCE}#what-it-costs`,
    summary: 'Lists what was spent or reserved on each day (UTC) by all plugins together, for up to 40 days.',
    access: 'signed',
    on: { method: 'GET', resource: 'service', path: '/-/deal/v1/spending' },
    pages: 'Days',
    result: z.object({
      Days: z
        .array(z.object({ Day: z.iso.date(), Fil: z.string().describe('Decimal number of fil.') }))
        .meta({ element: 'SpendingDay' })
        .describe('Days with expenses, the oldest first.'),
    }),
    async answer(_, { caller }) {
      requireOwnAccount(caller)
      return { Days: (await spending.days()).map(({ day, total }) => ({ Day: day, Fil: formatAmount(total) })) }
    },
  })
}
