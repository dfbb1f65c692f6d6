import { z } from 'zod'
import { optional } from '../../rest/schemas.js'
import { parsePrice, sortable } from '../units.js'
import type { Condition } from './task-table.js'
import { tagList } from './terms.js'

/**
 * A parameter that narrows a list of tasks. An empty one is as good as none.
 * @param schema of the text, without spaces around it
 */
function filter<T>(schema: z.ZodType<T, string | undefined>, condition: (value: T & {}) => Condition, meaning: string) {
  return z
    .string()
    .trim()
    .optional()
    .pipe(z.preprocess((text) => text || undefined, schema.optional()))
    .transform((value) => (value === undefined || value === null ? undefined : condition(value)))
    .describe(meaning)
}

/** Most values in a list of states. */
const MAX_STATES = 20

const bit = (name: string) => z.enum(['1', '0'], { error: `${name} must be 1 or 0.` })

const price = (name: string) => optional(parsePrice, `${name} must be a decimal number of fil per GiB and epoch.`)

/**
 * The parameters of a list of tasks that narrow it: all of them must hold. A list of states matches each of them, a
 * list of tags the tasks with all of them. A task without a price has no limit there, and is not within one.
 */
export const taskFilters = {
  created_after: filter(
    z.string().regex(/^\d{1,12}$/, 'created_after must be a time in Unix seconds.'),
    (seconds) => ({ sql: 'created > ?', values: [Number(seconds)] }),
    'Unix seconds.',
  ),
  has_miner: filter(
    bit('has_miner'),
    (bit) => ({ sql: bit === '1' ? 'miner_id IS NOT NULL' : 'miner_id IS NULL', values: [] }),
    '1 or 0.',
  ),
  is_public: filter(bit('is_public'), (bit) => ({ sql: 'is_public = ?', values: [Number(bit)] }), '1 or 0.'),
  status: filter(
    z
      .string()
      .transform((text) => text.toLowerCase().split(','))
      .refine((states) => states.length <= MAX_STATES, `status may name at most ${MAX_STATES} states.`),
    (states) => ({
      sql: `lower(status) IN (${states.map(() => '?').join(', ')})`,
      values: states.map((state) => state.trim()),
    }),
    'States, separated by commas.',
  ),
  task_name: filter(
    z.string(),
    (text) => ({ sql: 'instr(folded_name, ?) > 0', values: [text.toLowerCase()] }),
    'A part of the name, in any case.',
  ),
  type: filter(
    z
      .string()
      .toLowerCase()
      .pipe(z.enum(['regular', 'verified'], { error: 'type must be regular or verified.' })),
    (type) => ({ sql: "coalesce(type, 'regular') = ?", values: [type] }),
    'regular or verified.',
  ),
  tags: filter(
    tagList,
    (tags) => ({
      sql: tags.map(() => "instr(',' || tags || ',', ?) > 0").join(' AND ') || '1 = 1',
      values: tags.map((tag) => `,${tag},`),
    }),
    'Tags, separated by commas.',
  ),
  max_price: filter(
    price('max_price'),
    (price) => ({ sql: 'max_price <= ?', values: [sortable(price)] }),
    'Decimal: fil per GiB and epoch.',
  ),
  min_price: filter(
    price('min_price'),
    (price) => ({ sql: 'min_price >= ?', values: [sortable(price)] }),
    'Decimal: fil per GiB and epoch.',
  ),
}

/** The conditions of a query. */
export function conditionsOf(query: z.output<z.ZodObject<typeof taskFilters>>): Condition[] {
  return (Object.keys(taskFilters) as (keyof typeof taskFilters)[]).flatMap((name) => query[name] ?? [])
}
