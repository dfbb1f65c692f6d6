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

/** Any other value: null. */
export const nullableNumber = numeric.nullable().catch(null)

/** Any other value: 0. */
export const count = numeric.pipe(z.int().nonnegative()).catch(0)

/** `true`, `1`, `"1"` or `"true"`; any other value is false. */
export const flag = z
  .unknown()
  .optional()
  .transform((value) => value === true || /^(?:1|true)$/i.test(String(value)))

/** Lists the items in `value[name]`, in one of its names, or in `value` itself: deployments differ. Null is no item. */
export function listOf<T>(item: z.ZodType<T>, ...names: readonly string[]): z.ZodType<T[]> {
  const pick = (value: unknown): unknown => {
    if (Array.isArray(value)) return value
    if (value === null || value === undefined || value === '') return []
    const object = value as Readonly<Record<string, unknown>>
    const name = names.find((one) => typeof object === 'object' && one in object)
    return name === undefined ? value : (object[name] ?? [])
  }
  return z.unknown().optional().transform(pick).pipe(z.array(item)) as unknown as z.ZodType<T[]>
}
