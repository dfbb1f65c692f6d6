import { z } from 'zod'
import { parseAmount } from './spend-ledger.js'

/** Schemas of options that plugins with services have. */
export const serviceOptions = {
  /** Address of a service; default none. */
  url: () => z.url({ protocol: /^https?$/ }).optional(),
  seconds: (min: number, max: number, fallback: number) => z.number().min(min).max(max).default(fallback),
  /** Fil per day; default 10. */
  filPerDay: () =>
    z
      .string()
      .refine(
        (text) => text === 'none' || parseAmount(text) !== undefined,
        'must be a decimal number of fil, with at most 18 digits after the point, or none',
      )
      .default('10'),
}

/** The cap in attofil that a text states; undefined for `none` and for no text, which are no cap. */
export function capOf(text: string | undefined): bigint | undefined {
  return text === undefined || text === 'none' ? undefined : parseAmount(text)
}
