import { z } from 'zod'
import type { Document, DocumentFields, Kind } from '../../common/service-documents.js'

const kinds: Readonly<Record<Kind, z.ZodType>> = {
  text: z.string(),
  nullableText: z.string().nullable(),
  count: z.int(),
  amount: z.number(),
  nullableNumber: z.number().nullable(),
  flag: z.boolean(),
  bit: z.literal([0, 1]),
  seconds: z.int().describe('Unix seconds; 0 for never.'),
  statistic: z.string().describe('A number with its unit.'),
}

type Members<Fields extends DocumentFields> = {
  [Name in keyof Fields]: z.ZodType<Document<Fields>[Name], Document<Fields>[Name]>
}

/** The members of a document as schemas, with their meanings. */
export function membersOf<Fields extends DocumentFields>(fields: Fields): Members<Fields> {
  const members = Object.entries(fields).map(([name, field]) => {
    const [kind, meaning] = typeof field === 'string' ? [field] : field
    return [name, meaning === undefined ? kinds[kind] : kinds[kind].describe(meaning)]
  })
  return Object.fromEntries(members) as Members<Fields>
}

/** The schema of a document. */
export function documentSchema<Fields extends DocumentFields>(fields: Fields): z.ZodObject<Members<Fields>> {
  return z.object(membersOf(fields))
}

/**
 * A text that a request may leave out; an empty one is as good as none.
 * @param read returns undefined for a text that is refused
 * @param refusal message for such a text; names the field
 */
export function optional<T>(read: (text: string) => T | undefined, refusal: string) {
  return z
    .string()
    .optional()
    .transform((text, context): T | undefined => {
      if (text === undefined || text === '') return undefined
      const value = read(text)
      if (value === undefined) context.addIssue({ code: 'custom', message: refusal })
      return value
    })
}

/** A text that a request must have. @param refusal message where it is absent or empty; names the field */
export function required(refusal: string) {
  return z.string({ error: refusal }).min(1, refusal)
}

/** One of some values, in any case, which a request may leave out. */
export function choice<T extends string>(name: string, values: readonly T[]) {
  const find = (text: string) => values.find((one) => one.toLowerCase() === text.toLowerCase())
  const list = values.join(', ')
  return optional(find, `${name} must be one of ${list}.`).describe(`One of ${list}.`)
}

/** A whole number, which a request may leave out. */
export function whole(name: string, least: number, most: number) {
  const read = (text: string): number | undefined => {
    const value = /^\d{1,12}$/.test(text) ? Number(text) : Number.NaN
    return value >= least && value <= most ? value : undefined
  }
  return optional(read, `${name} must be a whole number from ${least} to ${most}.`).describe(`${least} to ${most}.`)
}
