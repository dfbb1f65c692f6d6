import { z } from 'zod'
import { statedTerms } from './terms.js'

/** Where the operations of this plugin are described. */
export const SOURCE = 'docs/deals.md'

/** Body of the calls that make a deal. */
export const dealRequest = z.strictObject({
  ...statedTerms,
  Force: z.boolean().optional().describe('Make another deal though the same one was asked for within the last minute.'),
})
export type DealRequest = z.output<typeof dealRequest>
