import { z } from 'zod'

export interface OptionFacts {
  /** Path of the option, with dots for nested members. */
  readonly name: string
  /** Accepted values in words: `string`, `integer, 1 to 10`, `one of "a", "b"`. */
  readonly accepts: string
  /** The default as JSON; '' for none. */
  readonly default: string
  readonly required: boolean
  /** '' for none. */
  readonly description: string
}

interface JsonSchema {
  readonly type?: string | readonly string[]
  readonly enum?: readonly unknown[]
  readonly const?: unknown
  readonly anyOf?: readonly JsonSchema[]
  readonly properties?: Readonly<Record<string, JsonSchema>>
  readonly required?: readonly string[]
  readonly items?: JsonSchema
  readonly default?: unknown
  readonly description?: string
  readonly format?: string
  readonly minimum?: number
  readonly maximum?: number
  readonly minLength?: number
  readonly maxLength?: number
  readonly pattern?: string
}

/** Returns one entry per option, except objects of further options. The schema may be of another copy of zod 4. */
export function optionFacts(schema: z.ZodType | undefined): OptionFacts[] {
  if (!schema) return []
  const json = z.toJSONSchema(schema, {
    io: 'input',
    unrepresentable: 'any',
    // Each copy of zod keeps its own descriptions, and the schema finds them.
    override: ({ zodSchema, jsonSchema }) => {
      jsonSchema.description ??= (zodSchema as { description?: string }).description
    },
  })
  return membersOf(json as JsonSchema, '')
}

function membersOf({ properties = {}, required = [] }: JsonSchema, path: string): OptionFacts[] {
  return Object.entries(properties).flatMap(([name, member]) => {
    const full = `${path}${name}`
    if (member.properties && member.default === undefined) return membersOf(member, `${full}.`)
    return {
      name: full,
      accepts: acceptsOf(member),
      default: member.default === undefined ? '' : JSON.stringify(member.default),
      required: required.includes(name) && member.default === undefined,
      description: member.description ?? '',
    }
  })
}

function acceptsOf(schema: JsonSchema): string {
  const { type, anyOf, items, format, pattern } = schema
  if (schema.const !== undefined) return JSON.stringify(schema.const)
  if (schema.enum) return `one of ${schema.enum.map((value) => JSON.stringify(value)).join(', ')}`
  if (anyOf) return anyOf.map(acceptsOf).join(' or ')
  if (type === 'array') return items ? `list of ${acceptsOf(items)}` : 'list'
  const form = format ?? (pattern ? `like ${pattern}` : '')
  const word = type === undefined ? 'anything' : [type].flat().join(' or ')
  return [word, form, boundsOf(schema)].filter(Boolean).join(', ')
}

function boundsOf({ minimum, maximum, minLength, maxLength }: JsonSchema): string {
  const from = finite(minimum) ?? minLength
  const to = finite(maximum) ?? maxLength
  const unit = minLength !== undefined || maxLength !== undefined ? ' characters' : ''
  if (from !== undefined && to !== undefined) return `${from} to ${to}${unit}`
  if (from !== undefined) return `at least ${from}${unit}`
  return to === undefined ? '' : `at most ${to}${unit}`
}

/** Drops the bounds that zod gives every integer, those of exact doubles. */
function finite(bound: number | undefined): number | undefined {
  return bound === undefined || Math.abs(bound) === Number.MAX_SAFE_INTEGER ? undefined : bound
}
