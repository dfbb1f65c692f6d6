import { S3Error } from '../../../common/errors/s3-error.js'
import { isDeeper } from '../../../common/json-depth.js'
import { memberNamed, putOnce } from './members.js'
import { invalidArgument, memberPath } from './names.js'
import { booleanOf, numberOf } from './scalars.js'
import type { ObjectShape, Shape } from './shape.js'

/** Larger than the depth of any document of a call. */
const MAX_DEPTH = 32

/** Throws InvalidRequest for invalid JSON. */
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

/**
 * Converts a JSON value to the shape of a schema: canonical member names, text for numbers where the schema wants text,
 * and vice versa. A value that does not fit stays unchanged, so that the schema refuses it.
 * @throws InvalidArgument for members that are unknown or given twice
 */
export function fromJson(shape: Shape, value: unknown, path = '', aliases?: ReadonlyMap<string, string>): unknown {
  switch (shape.kind) {
    case 'text':
      if (typeof value === 'number') return exactText(value, path)
      return typeof value === 'boolean' ? String(value) : value
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

/**
 * Number of decimal digits that a double always represents exactly:
 * https://en.wikipedia.org/wiki/Double-precision_floating-point_format
 */
const EXACT_DIGITS = 15

/**
 * Converts a number to text, as schemas want it for amounts of money and ids, where a digit lost to rounding changes
 * the value. Throws InvalidArgument.
 */
function exactText(value: number, path: string): string {
  const text = String(value)
  const digits = text.replace(/e.*$/, '').replace(/\D/g, '').replace(/^0+/, '')
  if (digits.length <= EXACT_DIGITS) return text
  throw invalidArgument(
    path,
    `has more than ${EXACT_DIGITS} digits, which JSON numbers do not keep: send it as a string`,
  )
}

function objectFrom(shape: ObjectShape, value: object, path: string, aliases?: ReadonlyMap<string, string>): unknown {
  const members = new Map<string, unknown>()
  for (const [given, member] of Object.entries(value)) {
    const { name, shape: inner } = memberNamed(shape, given, path, aliases)
    const at = memberPath(path, given)
    // Many clients send null for members that they do not set.
    if (member === null && !inner.nullable) continue
    putOnce(members, name, fromJson(inner, member, at), at)
  }
  // fromEntries creates own properties, whatever the names.
  return Object.fromEntries(members)
}
