import { S3Error } from '../errors/s3-error.js'
import { memberNamed, putOnce } from './members.js'
import { invalidArgument, memberPath } from './names.js'
import { booleanOf, numberOf } from './scalars.js'
import type { ObjectShape, Shape } from './shape.js'

/** Deeper than any document of ours. */
const MAX_DEPTH = 32

/** Throws InvalidRequest for what is no JSON. */
export function parseJson(text: string): unknown {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch (cause) {
    throw new S3Error('InvalidRequest', { message: `The body is not valid JSON: ${(cause as Error).message}`, cause })
  }
  if (isDeeper(value, MAX_DEPTH)) {
    throw new S3Error('InvalidRequest', { message: `The body is nested more than ${MAX_DEPTH} levels deep.` })
  }
  return value
}

function isDeeper(value: unknown, levels: number): boolean {
  if (typeof value !== 'object' || value === null) return false
  return levels === 0 || Object.values(value).some((member) => isDeeper(member, levels - 1))
}

/**
 * A JSON value as a schema of this shape wants it: members by their right names, text for numbers where text is wanted and the other way round. What does not fit stays as
 * it is, for the schema to refuse.
 * @throws InvalidArgument for members that are unknown or there twice
 */
export function fromJson(shape: Shape, value: unknown, path = '', aliases?: ReadonlyMap<string, string>): unknown {
  switch (shape.kind) {
    case 'text':
      return typeof value === 'number' || typeof value === 'boolean' ? String(value) : value
    case 'number':
      return typeof value === 'string' ? (numberOf(value) ?? value) : value
    case 'boolean':
      return typeof value === 'string' || typeof value === 'number' ? (booleanOf(String(value)) ?? value) : value
    case 'list':
      if (typeof value === 'object' && !Array.isArray(value)) return value
      return [value].flat().map((item, i) => fromJson(shape.item, item, `${path}[${i}]`))
    case 'object':
      if (typeof value !== 'object' || value === null) return value
      if (Array.isArray(value)) throw invalidArgument(path, 'must be an object')
      return objectFrom(shape, value, path, aliases)
    default:
      return value
  }
}

function objectFrom(shape: ObjectShape, value: object, path: string, aliases?: ReadonlyMap<string, string>): unknown {
  const members = new Map<string, unknown>()
  for (const [given, member] of Object.entries(value)) {
    const { name, shape: inner } = memberNamed(shape, given, path, aliases)
    const at = memberPath(path, given)
    // Many clients say null for what they have nothing to say of.
    if (member === null && !inner.nullable) continue
    putOnce(members, name, fromJson(inner, member, at), at)
  }
  // As own properties, whatever their names.
  return Object.fromEntries(members)
}
