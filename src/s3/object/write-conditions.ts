import type { IncomingHttpHeaders } from 'node:http'
import { S3Error } from '../../../common/errors/s3-error.js'
import { listsEtag } from '../../../common/etags.js'
import type { Precondition } from '../../api/store.js'

/**
 * Reads If-None-Match and If-Match of a write:
 * https://docs.aws.amazon.com/AmazonS3/latest/userguide/conditional-requests.html. Undefined if the request has
 * neither. Throws NotImplemented for both, as S3 does. S3 takes no ETag in If-None-Match; RFC 9110 section 13.1.2
 * defines what it means.
 */
export function writePrecondition(headers: IncomingHttpHeaders): Precondition | undefined {
  const match = headers['if-match']
  const noneMatch = headers['if-none-match']
  if (match !== undefined && noneMatch !== undefined) {
    throw new S3Error('NotImplemented', {
      message: 'A write has either If-Match or If-None-Match.',
      fields: { Header: 'If-None-Match' },
    })
  }
  if (match === undefined && noneMatch === undefined) return undefined
  return (current) => {
    if (noneMatch !== undefined && current && listsEtag(noneMatch, current.etag)) throw failed('If-None-Match')
    if (match === undefined) return
    if (!current) throw new S3Error('NoSuchKey')
    if (!listsEtag(match, current.etag)) throw failed('If-Match')
  }
}

export const IF_MATCH_SIZE = 'x-amz-if-match-size'
export const IF_MATCH_TIME = 'x-amz-if-match-last-modified-time'

/** Conditions on the object that a removal finds, as sent. */
interface RemovalConditions {
  readonly etag: string | undefined
  /** Bytes. */
  readonly size: string | undefined
  /** A date of HTTP or ISO 8601, of whole seconds. */
  readonly lastModified: string | undefined
  /** ms since 1970 */
  readonly storedBefore?: number | undefined
}

/**
 * Reads the conditions of a removal; undefined for none. Without an object, a condition on the ETag is NoSuchKey, and
 * the others hold. https://docs.aws.amazon.com/AmazonS3/latest/API/API_DeleteObject.html
 * @param names names of the conditions on size and time, for messages
 * @throws S3Error InvalidArgument
 */
export function removalPrecondition(
  conditions: RemovalConditions,
  names = { size: IF_MATCH_SIZE, lastModified: IF_MATCH_TIME },
): Precondition | undefined {
  const { etag, storedBefore } = conditions
  const size = conditions.size === undefined ? undefined : readSize(names.size, conditions.size)
  const seconds =
    conditions.lastModified === undefined ? undefined : readSeconds(names.lastModified, conditions.lastModified)
  if ((etag ?? size ?? seconds ?? storedBefore) === undefined) return undefined
  return (current) => {
    if (!current) {
      if (etag !== undefined) throw new S3Error('NoSuchKey')
      return
    }
    if (etag !== undefined && !listsEtag(etag, current.etag)) throw failed('If-Match')
    if (size !== undefined && current.size !== size) throw failed(names.size)
    if (seconds !== undefined && Math.floor(Date.parse(current.lastModified) / 1000) !== seconds)
      throw failed(names.lastModified)
    if (storedBefore !== undefined && !(Date.parse(current.lastModified) < storedBefore)) throw failed('stored before')
  }
}

function failed(condition: string): S3Error {
  return new S3Error('PreconditionFailed', { fields: { Condition: condition } })
}

function readSize(name: string, text: string): number {
  if (/^\d{1,15}$/.test(text.trim())) return Number(text)
  throw invalid(name, text, 'must be a size in bytes')
}

const DATE =
  /^(?:[A-Za-z]{3}, \d{1,2} [A-Za-z]{3} \d{4} \d\d:\d\d:\d\d GMT|\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,9})?Z)$/

function readSeconds(name: string, text: string): number {
  const time = DATE.test(text.trim()) ? Date.parse(text) : Number.NaN
  if (!Number.isNaN(time)) return Math.floor(time / 1000)
  throw invalid(name, text, 'must be a date such as Wed, 21 Oct 2015 07:28:00 GMT')
}

function invalid(name: string, text: string, what: string): S3Error {
  return new S3Error('InvalidArgument', {
    message: `${name} ${what}.`,
    fields: { ArgumentName: name, ArgumentValue: text.slice(0, 80) },
  })
}
