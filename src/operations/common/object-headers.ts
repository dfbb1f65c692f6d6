import type { ReplyHeaders } from '../../response/reply.js'
import type { ObjectChecksum } from '../../state/state.js'
import type { StoredObject } from '../../store/store.js'
import { archiveHeaders, metadataHeaders, type Reporting } from './archive-report.js'
import { quoted } from './etags.js'
import { httpTime } from './times.js'

/**
 * Response headers that GET and HEAD have in common, but for the length.
 * @param checksum as far as one is told: see told-checksum.ts
 */
export function objectHeaders(object: StoredObject, reporting: Reporting, checksum?: ObjectChecksum): ReplyHeaders {
  return {
    'content-type': object.contentType,
    etag: quoted(object.etag),
    'last-modified': httpTime(object.lastModified),
    'accept-ranges': 'bytes',
    ...object.headers,
    'x-amz-tagging-count': object.tags?.length || undefined,
    ...metadataHeaders(object, reporting),
    ...archiveHeaders(object, reporting),
    ...checksumHeaders(checksum),
  }
}

export function checksumHeaders(checksum: ObjectChecksum | undefined): ReplyHeaders {
  if (!checksum) return {}
  return {
    [`x-amz-checksum-${checksum.algorithm.toLowerCase()}`]: checksum.value,
    'x-amz-checksum-type': checksum.type,
  }
}

/** Query parameters of GET and HEAD that replace response headers, and what they replace. */
export const OVERRIDES: Readonly<Record<string, string>> = {
  'response-content-type': 'content-type',
  'response-content-language': 'content-language',
  'response-expires': 'expires',
  'response-cache-control': 'cache-control',
  'response-content-disposition': 'content-disposition',
  'response-content-encoding': 'content-encoding',
}
