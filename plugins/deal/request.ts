import { z } from 'zod'
import { statedTerms } from './terms/terms.js'

/** Page that describes the operations of this plugin. */
export const SOURCE = 'docs/deals.md'

/** Body of the calls that make a deal. */
export const dealRequest = z.strictObject({
  ...statedTerms,
  Force: z
    .boolean()
    .optional()
    .describe(
      'Make another deal although the same one was requested within the last minute, or the gateway lists one that is not on record.',
    ),
})
export type DealRequest = z.output<typeof dealRequest>
