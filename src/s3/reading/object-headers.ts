import { quoted } from '../../common/etags.js'
import { httpTime } from '../../common/times.js'
import type { StoredObject } from '../../objects/store.js'
import type { ReplyHeaders } from '../../response/reply.js'
import type { ObjectChecksum } from '../../state/state.js'
import { archiveHeaders, metadataHeaders, type Reporting } from './archive-report.js'

/**
 * Returns the response headers that GET and HEAD share, except the length.
 * @param checksum the checksum to return, if any: see told-checksum.ts
 */
export function objectHeaders(object: StoredObject, reporting: Reporting, checksum?: ObjectChecksum): ReplyHeaders {
  const headers: ReplyHeaders = {
    'content-type': object.contentType,
    etag: quoted(object.etag),
    'last-modified': httpTime(object.lastModified),
    'accept-ranges': 'bytes',
  }
  Object.assign(headers, object.headers)
  if (object.tags?.length) headers['x-amz-tagging-count'] = object.tags.length
  const more = [metadataHeaders(object, reporting), archiveHeaders(object, reporting), checksumHeaders(checksum)]
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
