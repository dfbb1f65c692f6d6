import type { IncomingHttpHeaders } from 'node:http'
import { S3Error } from '../../common/errors/s3-error.js'
import { listsEtag } from '../../common/etags.js'
import type { StoredObject } from '../../objects/store.js'

/** Header names of the conditions of a read or of the source of a copy. */
export interface ConditionNames {
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
