import { z } from 'zod'

/**
 * Numbers, flags and amounts of money in the documents of this plugin. An amount is text everywhere, because a JSON
 * number is a double, which would round it. A count is an integer everywhere.
 */

/** Fil, in the fewest digits that are exact: `0.000005`. */
const AMOUNT = String.raw`^\d+(\.\d{1,18})?$`
/** The form that `parseAmount` accepts: also `5e-7`. */
export const STATED_AMOUNT = String.raw`^\d{1,24}(\.\d{1,60})?([eE][+-]?\d{1,2})?$`

/** An amount that this server computed. */
export const amount = z.string().meta({ pattern: AMOUNT })

/** An amount in the gateway's own form; '' when it gives none. */
export const toldAmount = z.string().meta({ pattern: `${STATED_AMOUNT}|^$` })

/** An amount that a client states; checked by `readTerms`. */
export const statedAmount = z.string().meta({ pattern: STATED_AMOUNT })

/** An integer that a client states. Other values pass, so that `readTerms` can report all violations at once. */
export function statedInteger(minimum: number, maximum: number) {
  return z
    .custom<number | string>((value) => typeof value === 'number' || typeof value === 'string', 'must be a number')
    .meta({ type: 'integer', minimum, maximum })
}

/** A flag that a client states; other values pass likewise. */
export const statedFlag = z
  .custom<boolean | string>((value) => typeof value === 'boolean' || typeof value === 'string', 'must be true or false')
  .meta({ type: 'boolean' })
