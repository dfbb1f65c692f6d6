import type { IncomingHttpHeaders } from 'node:http'
import { S3Error } from '../../../common/errors/s3-error.js'
import { listsEtag } from '../../../common/etags.js'
import { requiredNumber } from '../../../common/query.js'
import type { ByteRange } from '../../api/gateway.js'
import type { ReplyHeaders, S3Request } from '../../api/request.js'
import type { StoredObject } from '../../api/store.js'

/** Header names of the conditions of a read or of the source of a copy. */
interface ConditionNames {
  readonly match: string
  readonly noneMatch: string
  readonly modifiedSince: string
  readonly unmodifiedSince: string
}

export const READ: ConditionNames = {
  match: 'if-match',
  noneMatch: 'if-none-match',
  modifiedSince: 'if-modified-since',
  unmodifiedSince: 'if-unmodified-since',
}

export const COPY_SOURCE: ConditionNames = {
  match: 'x-amz-copy-source-if-match',
  noneMatch: 'x-amz-copy-source-if-none-match',
  modifiedSince: 'x-amz-copy-source-if-modified-since',
  unmodifiedSince: 'x-amz-copy-source-if-unmodified-since',
}

/** Returns true if a condition may lead to 304, so that reading the metadata first is cheaper than a transfer. */
export function mayBeUnchanged(headers: IncomingHttpHeaders): boolean {
  return headers[READ.noneMatch] !== undefined || headers[READ.modifiedSince] !== undefined
}

/**
 * Returns 'ok', or 'unchanged' if a read answers 304. Throws PreconditionFailed. Order and precedence: RFC 9110 section
 * 13.2.2 and https://docs.aws.amazon.com/AmazonS3/latest/API/API_GetObject.html (If-Match wins over
 * If-Unmodified-Since, If-None-Match over If-Modified-Since).
 */
export function checkConditions(
  headers: IncomingHttpHeaders,
  object: Pick<StoredObject, 'etag' | 'lastModified'>,
  names: ConditionNames,
): 'ok' | 'unchanged' {
  if (!hasConditions(headers, names)) return 'ok'
  const match = text(headers[names.match])
  const noneMatch = text(headers[names.noneMatch])
  const unmodifiedSince = date(headers[names.unmodifiedSince])
  const modifiedSince = date(headers[names.modifiedSince])
  const modified = Math.floor(Date.parse(object.lastModified) / 1000) * 1000

  if (match !== undefined) {
    if (!listsEtag(match, object.etag)) throw failed(names.match)
  } else if (unmodifiedSince !== undefined && modified > unmodifiedSince) throw failed(names.unmodifiedSince)

  if (noneMatch !== undefined) return listsEtag(noneMatch, object.etag) ? 'unchanged' : 'ok'
  if (modifiedSince !== undefined && modified <= modifiedSince) return 'unchanged'
  return 'ok'
}

function hasConditions(headers: IncomingHttpHeaders, names: ConditionNames): boolean {
  return (
    headers[names.match] !== undefined ||
    headers[names.noneMatch] !== undefined ||
    headers[names.unmodifiedSince] !== undefined ||
    headers[names.modifiedSince] !== undefined
  )
}

/** Names the condition as S3 does: `If-Match`, `x-amz-copy-source-If-Match`. */
export function failed(name: string): S3Error {
  const shown = name.replace(/(?:if|none|match|modified|unmodified|since)(?=-|$)/g, (word) => capital(word))
  return new S3Error('PreconditionFailed', { fields: { Condition: shown } })
}

function capital(word: string): string {
  return word.charAt(0).toUpperCase() + word.slice(1)
}

function text(value: string | string[] | undefined): string | undefined {
  return Array.isArray(value) ? value.join(',') : value
}

/** Ignores an invalid date, RFC 9110 section 13.1.3. */
function date(value: string | string[] | undefined): number | undefined {
  const time = Date.parse(text(value) ?? '')
  return Number.isNaN(time) ? undefined : time
}

/** Returns the requested range of this object; undefined for the whole object, also if If-Range does not match. */
export function rangeOf(
  { headers }: { readonly headers: IncomingHttpHeaders },
  object: Pick<StoredObject, 'etag' | 'lastModified'>,
): ByteRange | undefined {
  return holds(headers['if-range']?.toString(), object) ? parseRange(headers.range) : undefined
}

/** RFC 9110 section 13.1.5: weak validators never match. */
function holds(value: string | undefined, object: Pick<StoredObject, 'etag' | 'lastModified'>): boolean {
  if (value === undefined) return true
  if (value.startsWith('W/')) return false
  const time = value.startsWith('"') ? Number.NaN : Date.parse(value)
  if (Number.isNaN(time)) return listsEtag(value, object.etag)
  return Math.floor(Date.parse(object.lastModified) / 1000) * 1000 === time
}

/**
 * Parses a single byte range of a Range header. Returns undefined if the answer is the whole object: no header, other
 * units, several ranges (S3 does not serve them), or a range that RFC 9110 section 14.1.1 calls invalid.
 */
export function parseRange(header: string | undefined): ByteRange | undefined {
  // No two adjacent parts can both match white space, so matching takes linear time.
  const found = /^\s*bytes\s*=\s*(?:(\d+)\s*)?-\s*(?:(\d+)\s*)?$/i.exec(header ?? '')
  if (!found) return undefined
  const [, first, last] = found
  if (first === undefined) return last === undefined ? undefined : { suffix: position(last) }
  if (last === undefined) return { first: position(first) }
  return BigInt(first) <= BigInt(last) ? { first: position(first), last: position(last) } : undefined
}

/** Caps positions at the largest exact number, which lies beyond the end of any object. */
function position(digits: string): number {
  return Math.min(Number(digits), Number.MAX_SAFE_INTEGER)
}

export interface LocatedPart {
  /** From 1. */
  readonly number: number
  readonly range: { readonly first: number; readonly last: number } | undefined
  /** Undefined for an object that was not uploaded in parts, as S3 does not send it then. */
  readonly count: number | undefined
}

/**
 * Returns the location of the part `partNumber`; undefined without that parameter. Throws InvalidPartNumber,
 * InvalidArgument.
 */
export function locatePart(request: S3Request<'object'>, object: StoredObject): LocatedPart | undefined {
  const value = request.query.get('partNumber')
  if (value === undefined) return undefined
  const wanted = requiredNumber('partNumber', value, { min: 1, max: 10_000 })
  const runs = object.partSizes ?? [[object.size, 1] as const]
  let first = 0
  let number = 1
  for (const [bytes, count] of runs) {
    if (wanted < number + count) {
      first += (wanted - number) * bytes
      const parts = object.partSizes?.reduce((sum, [, n]) => sum + n, 0)
      return { number: wanted, range: bytes === 0 ? undefined : { first, last: first + bytes - 1 }, count: parts }
    }
    first += bytes * count
    number += count
  }
  throw new S3Error('InvalidPartNumber', { fields: { ActualPartCount: number - 1, PartNumberRequested: wanted } })
}

export function partHeaders(part: LocatedPart | undefined, object: StoredObject): ReplyHeaders {
  if (part?.count === undefined || object.partSizes === undefined) return {}
  return { 'x-amz-mp-parts-count': part.count }
}
