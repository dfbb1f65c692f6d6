import type { z } from 'zod'
import { normalized } from './names.js'

/** The parts of a schema that zod documents for libraries: https://zod.dev/library-authors. */
interface Definition {
  readonly type: string
  readonly shape?: Readonly<Record<string, z.ZodType>>
}

/**
 * Names of the members of a schema that is an object as such. Undefined for any other schema, such as a union, and for
 * names that are not distinct: `shapeOf` reads those, at a hundred times the cost.
 */
export function plainNames(schema: z.ZodType): readonly string[] | undefined {
  const { type, shape } = definitionOf(schema)
  if (type !== 'object' || shape === undefined) return undefined
  const names = Object.keys(shape)
  return new Set(names.map(normalized)).size === names.length ? names : undefined
}

/** Whether the member of a schema is a list as such. */
export function isPlainList(schema: z.ZodType, member: string): boolean {
  const { type, shape } = definitionOf(schema)
  const found = type === 'object' ? shape?.[member] : undefined
  return found !== undefined && definitionOf(found).type === 'array'
}

function definitionOf(schema: z.ZodType): Definition {
  return schema._zod.def as unknown as Definition
}
