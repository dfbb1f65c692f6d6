import { z } from 'zod'

/** What a schema says of the form of a document, as far as it matters for reading one that holds nothing but text. */
export type Shape =
  | { readonly kind: 'object'; readonly members: ReadonlyMap<string, Shape>; readonly open: boolean }
  | { readonly kind: 'list'; readonly of: Shape }
  | { readonly kind: 'text' | 'number' | 'boolean' | 'any' }

interface JsonSchema {
  readonly type?: string | readonly string[]
  readonly properties?: Readonly<Record<string, JsonSchema>>
  readonly additionalProperties?: unknown
  readonly items?: JsonSchema
  readonly enum?: readonly unknown[]
  readonly const?: unknown
  readonly anyOf?: readonly JsonSchema[]
  readonly oneOf?: readonly JsonSchema[]
  readonly allOf?: readonly JsonSchema[]
}

/**
 * Of what a schema takes in. By way of JSON Schema, so that a schema made with another copy of zod, as a plugin in a folder of its own has it, is understood too.
 */
export function shapeOf(schema: z.ZodType): Shape {
  return fromJson(z.toJSONSchema(schema, { io: 'input', unrepresentable: 'any' }) as JsonSchema)
}

function fromJson(schema: JsonSchema): Shape {
  const choices = schema.anyOf ?? schema.oneOf ?? schema.allOf
  if (choices) return firstKnown(choices.map(fromJson))
  if (schema.enum ?? schema.const !== undefined) return ofValues(schema.enum ?? [schema.const])
  const types = [schema.type ?? []].flat().filter((type) => type !== 'null')
  switch (types[0]) {
    case 'object':
      return {
        kind: 'object',
        members: new Map(Object.entries(schema.properties ?? {}).map(([name, member]) => [name, fromJson(member)])),
        open: schema.additionalProperties !== false,
      }
    case 'array':
      return { kind: 'list', of: fromJson(schema.items ?? {}) }
    case 'string':
      return { kind: 'text' }
    case 'number':
    case 'integer':
      return { kind: 'number' }
    case 'boolean':
      return { kind: 'boolean' }
    default:
      return { kind: 'any' }
  }
}

/** Of a union: the form of the first that has one. */
function firstKnown(shapes: readonly Shape[]): Shape {
  return shapes.find(({ kind }) => kind !== 'any') ?? { kind: 'any' }
}

function ofValues(values: readonly unknown[]): Shape {
  const kinds = new Set(values.filter((value) => value !== null).map((value) => typeof value))
  if (kinds.size !== 1) return { kind: 'any' }
  const [kind] = kinds
  return kind === 'string' ? { kind: 'text' } : kind === 'number' || kind === 'boolean' ? { kind } : { kind: 'any' }
}
