import { S3Error } from '../../../common/errors/s3-error.js'
import { hasLoneSurrogate, isDeeper } from '../../../common/json.js'
import { repeatedParameter, wholeNumber } from '../../../common/query.js'
import { parseDocument, type XmlNode } from '../../../common/xml.js'
import type { S3Request } from '../../api/request.js'
import { readSmallForm } from '../../http/form/read-form.js'
import { refuseVersion } from '../../http/read-request.js'
import { formatOfType } from './format.js'
import { fieldsNode, fromText } from './read-text.js'
import {
  booleanOf,
  invalidArgument,
  memberNamed,
  memberPath,
  normalized,
  numberOf,
  type ObjectShape,
  putOnce,
  type Shape,
} from './shape.js'

const MAX_BYTES = 1024 * 1024
const FORM = 'application/x-www-form-urlencoded'

/**
 * Reads the body of a call into the shape of its schema; an empty body is an empty document. Content-Type selects JSON,
 * XML or a form, urlencoded or multipart. `curl -d` and `aws s3api put-object` send no useful type, so for other types
 * the first character decides.
 * @throws EntityTooLarge, InvalidRequest, MalformedXML, InvalidArgument
 */
export async function readBody(
  { body, headers }: Pick<S3Request, 'body' | 'headers'>,
  shape: Shape,
  aliases: ReadonlyMap<string, string>,
): Promise<unknown> {
  const bytes = await collect(body)
  const type = headers['content-type']
  if (type !== undefined && /^multipart\/form-data\b/i.test(type)) {
    return fromText(shape, await readForm(bytes, type, shape), '', aliases)
  }
  const text = utf8(bytes)
  const said = formatOfType(type)
  const first = text.trimStart()[0]
  if (first === undefined) return fromText(shape, fieldsNode([]))
  if (said === 'json' || (!said && first === '{')) return fromJson(shape, objectOf(parseJson(text)), '', aliases)
  if (said === 'xml' || first === '<') return fromText(shape, (await parseDocument(bytes)).node, '', aliases)
  if (type === undefined || type.toLowerCase().startsWith(FORM)) {
    return fromText(shape, fieldsNode(new URLSearchParams(text.trim())), '', aliases)
  }
  throw new S3Error('InvalidRequest', { message: 'The body must be JSON, XML or the fields of a form.' })
}

async function collect(body: S3Request['body']): Promise<Buffer> {
  try {
    return (await body.collect(MAX_BYTES)).bytes
  } catch (error) {
    if (!(error instanceof S3Error) || error.code !== 'MaxMessageLengthExceeded') throw error
    throw new S3Error('EntityTooLarge', {
      message: `The body of a call may have at most ${MAX_BYTES} bytes.`,
      fields: { MaxSizeAllowed: MAX_BYTES },
    })
  }
}

/** Decodes UTF-8 and removes a byte order mark. */
function utf8(bytes: Buffer): string {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes)
  } catch (cause) {
    throw new S3Error('InvalidRequest', { message: 'The body is not valid UTF-8.', cause })
  }
}

function objectOf(value: unknown): object {
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value
  throw new S3Error('InvalidRequest', { message: 'The body must be a JSON object.' })
}

/**
 * Reads a multipart form into the children of an element. A file becomes a text; its name becomes the member FileName
 * if the schema has one. Throws S3Error.
 */
async function readForm(bytes: Buffer, contentType: string, shape: Shape): Promise<XmlNode> {
  const fields = await readSmallForm(bytes, contentType)
  const named = shape.kind === 'object' && shape.names.has(normalized('FileName'))
  return fieldsNode(
    fields.flatMap(({ name, text, fileName }): [string, string][] =>
      named && fileName
        ? [
            [name, text],
            ['FileName', fileName],
          ]
        : [[name, text]],
    ),
  )
}

/** Larger than the depth of any document of a call. */
const MAX_DEPTH = 32

/** Throws InvalidRequest for invalid JSON. */
function parseJson(text: string): unknown {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    // The reason that JSON.parse gives quotes the body, which may have a secret.
    throw new S3Error('InvalidRequest', { message: 'The body is not valid JSON.' })
  }
  if (hasLoneSurrogate(text)) {
    throw new S3Error('InvalidRequest', { message: 'The body has an escape that is no Unicode character.' })
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
function fromJson(shape: Shape, value: unknown, path = '', aliases?: ReadonlyMap<string, string>): unknown {
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

/** Parameters that every call accepts. */
export const FRAME_PARAMETERS = ['format', 'max-items', 'continuation-token', 'raw', 'expand', 'versionId'] as const

const MAX_ITEMS = 1000

export interface FrameQuery {
  /** Items of a page, 1 to 1000. */
  readonly maxItems: number
  readonly token: string | undefined
  readonly raw: boolean
  readonly expand: readonly string[]
}

/**
 * Throws InvalidArgument, also for the version of an object where the call is about none.
 * @param own parameters of the call
 */
export function readFrameQuery({ query }: Pick<S3Request, 'query'>, own: readonly string[]): FrameQuery {
  for (const name of FRAME_PARAMETERS) {
    if (query.entries.filter(([found]) => found === name).length > 1) throw repeatedParameter(name)
  }
  if (!own.includes('versionId')) refuseVersion(query)
  return {
    maxItems: wholeNumber('max-items', query.get('max-items'), { fallback: MAX_ITEMS, min: 1, max: MAX_ITEMS }),
    token: query.get('continuation-token') || undefined,
    raw: readRaw(query.get('raw')),
    expand: (query.get('expand') ?? '').split(',').filter((value) => value !== ''),
  }
}

function readRaw(value: string | undefined): boolean {
  if (value === undefined || value === '0' || value === 'false') return false
  if (value === '' || value === '1' || value === 'true') return true
  throw invalidArgument('raw', 'must be 0 or 1', value)
}

/**
 * Reads the call's own parameters into the shape of their schema. An unknown parameter that may have been meant for the
 * call is refused, because a misspelt filter must not be ignored. Throws InvalidArgument.
 * @param subresource name of the sub-resource, whose value must be empty
 */
export function readQuery(
  { query }: Pick<S3Request, 'query'>,
  shape: ObjectShape & Shape,
  subresource?: string,
): unknown {
  const own: (readonly [string, string])[] = []
  for (const [name, value] of query.entries) {
    if (name === subresource) {
      if (value !== '')
        throw new S3Error('InvalidArgument', {
          message: `${name} takes no value: send ?${name}=`,
          fields: { ArgumentName: name, ArgumentValue: value.slice(0, 100) },
        })
    } else if (shape.names.has(normalized(name))) {
      // An empty parameter counts as absent, as in S3 (`prefix=`).
      if (value !== '') own.push([name, value])
    } else if (!isFrames(name) && !/^x-/i.test(name)) throw unknown(name, shape)
  }
  return fromText(shape, fieldsNode(own))
}

function isFrames(name: string): boolean {
  return FRAME_PARAMETERS.some((known) => known === name)
}

function unknown(name: string, { members }: ObjectShape): S3Error {
  const known = [...members.keys(), ...FRAME_PARAMETERS]
  return invalidArgument(name, `is not a parameter of this call: the parameters are ${known.join(', ')}`)
}
