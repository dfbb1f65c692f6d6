import { z } from 'zod'

/** Members of answers, parsed leniently: deployments omit members, or send numbers as text and text as numbers. */

const scalar = z.union([z.string(), z.number(), z.boolean()])

/** Missing: ''. */
export const text = scalar.nullish().transform((value) => String(value ?? ''))

/** Missing: null. */
export const nullableText = scalar
  .nullish()
  .transform((value) => (value === null || value === undefined ? null : String(value)))

const numeric = z.preprocess(
  (value) => (typeof value === 'string' && value.trim() !== '' ? Number(value) : value),
  z.number(),
)

/** Any other value: 0. */
export const count = numeric.pipe(z.int()).catch(0)

/** Any other value: 0; with a fraction. */
export const amount = numeric.catch(0)

/** `true`, `1`, `"1"` or `"true"`; any other value is false. */
export const flag = z
  .unknown()
  .optional()
  .transform((value) => value === true || /^(?:1|true)$/i.test(String(value)))

/** A list; null and a missing one are empty. */
export function listOf<T>(item: z.ZodType<T>): z.ZodType<T[]> {
  return z
    .array(item)
    .nullish()
    .transform((items) => items ?? []) as unknown as z.ZodType<T[]>
}
