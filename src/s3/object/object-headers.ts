import { S3Error } from '../../../common/errors/s3-error.js'
import { quoted } from '../../../common/etags.js'
import { httpTime } from '../../../common/time.js'
import type { Context } from '../../api/context.js'
import type { CustomerKey } from '../../api/encryption.js'
import type { ObjectChecksum } from '../../api/object-checksum.js'
import type { ReplyHeaders, S3Request } from '../../api/request.js'
import type { StoredObject } from '../../api/store.js'
import { unicodeHeader } from '../../http/header-text.js'
import { versionHeaders } from '../versions/version.js'
import { headerText } from './attributes.js'
import { encryptionHeaders } from './encryption.js'
import type { LocatedPart } from './read-conditions.js'
import { archiveHeaders, metadataHeaders, type Reporting } from './storage-class.js'

interface Facts {
  /** The checksum to return, if any: see `reportedChecksum`. */
  readonly checksum?: ObjectChecksum | undefined
  /** The key of the client that the request has. */
  readonly customer: CustomerKey | undefined
}

/**
 * Returns the response headers that GET and HEAD share, except the length.
 */
export function objectHeaders(object: StoredObject, reporting: Reporting, { checksum, customer }: Facts): ReplyHeaders {
  const headers: ReplyHeaders = {
    'content-type': object.contentType,
    etag: quoted(object.etag),
    'last-modified': httpTime(object.lastModified),
    'accept-ranges': 'bytes',
  }
  Object.assign(headers, object.headers)
  if (object.tags?.length) headers['x-amz-tagging-count'] = object.tags.length
  const more = [metadataHeaders(object, reporting), archiveHeaders(object, reporting), checksumHeaders(checksum)]
  if (object.versionId !== undefined) more.push(versionHeaders(object))
  if (object.encrypted) more.push(encryptionHeaders(object, customer))
  return Object.assign(headers, ...more)
}

export function checksumHeaders(checksum: ObjectChecksum | undefined): ReplyHeaders {
  if (!checksum) return {}
  return {
    [`x-amz-checksum-${checksum.algorithm.toLowerCase()}`]: checksum.value,
    'x-amz-checksum-type': checksum.type,
  }
}

/** Query parameters of GET and HEAD that override response headers, and these headers. */
export const OVERRIDES: Readonly<Record<string, string>> = {
  'response-content-type': 'content-type',
  'response-content-language': 'content-language',
  'response-expires': 'expires',
  'response-cache-control': 'cache-control',
  'response-content-disposition': 'content-disposition',
  'response-content-encoding': 'content-encoding',
}

/**
 * Applies response-content-type and similar parameters. Values are percent-decoded UTF-8, and headers carry its bytes.
 */
export function withOverrides(request: S3Request<'object'>, headers: ReplyHeaders): ReplyHeaders {
  if (request.query.entries.length === 0) return headers
  const changed = { ...headers }
  for (const [parameter, header] of Object.entries(OVERRIDES)) {
    const value = request.query.get(parameter)
    if (value !== undefined) changed[header] = unicodeHeader(value)
  }
  return changed
}

/**
 * Throws InvalidRequest for overrides of anonymous callers, who could otherwise serve their own pages from this server.
 */
export function refuseAnonymousOverrides({ query }: S3Request<'object'>, { caller }: Context): void {
  if (caller) return
  const given = Object.keys(OVERRIDES).find((parameter) => query.has(parameter))
  if (given === undefined) return
  throw new S3Error('InvalidRequest', {
    message: 'Request specific response headers cannot be used for anonymous GET requests.',
    fields: { ArgumentName: given },
  })
}

/**
 * Returns the checksum of the bytes of an answer, for clients that send x-amz-checksum-mode: ENABLED. For a part it is
 * that of the part. For any other range there is none, because a client would compare the range with the checksum of
 * the whole object and fail.
 * https://docs.aws.amazon.com/AmazonS3/latest/userguide/checking-object-integrity-upload.html
 * @param ranged true if the answer is a range or a part of the object
 */
export async function reportedChecksum(
  request: S3Request<'object'>,
  context: Context,
  object: StoredObject,
  part: LocatedPart | undefined,
  ranged: boolean,
): Promise<ObjectChecksum | undefined> {
  const { checksum } = object
  if (!checksum || headerText(request.headers, 'x-amz-checksum-mode')?.toUpperCase() !== 'ENABLED') return undefined
  if (!part) return ranged ? undefined : checksum
  // An object that was uploaded as a whole is its own only part.
  if (!object.partSizes) return checksum
  const parts = await context.store.partChecksums(object)
  const value = parts?.values[part.number - 1]
  return parts && value !== undefined ? { algorithm: parts.algorithm, value, type: checksum.type } : undefined
}
