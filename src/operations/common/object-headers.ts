import type { ReplyHeaders } from '../../response/reply.js'
import type { StoredObject } from '../../store/store.js'
import { quoted } from './etags.js'
import { httpTime } from './times.js'

/** Response headers that GET and HEAD have in common, but for the length. */
export function objectHeaders(object: StoredObject, checksums: boolean): ReplyHeaders {
  const headers: ReplyHeaders = {
    'content-type': object.contentType,
    etag: quoted(object.etag),
    'last-modified': httpTime(object.lastModified),
    'accept-ranges': 'bytes',
    ...object.headers,
    'x-amz-tagging-count': object.tags?.length || undefined,
  }
  for (const [name, value] of Object.entries(object.metadata)) headers[`x-amz-meta-${name}`] = value
  if (checksums && object.checksum) {
    headers[`x-amz-checksum-${object.checksum.algorithm.toLowerCase()}`] = object.checksum.value
    headers['x-amz-checksum-type'] = object.checksum.type
  }
  return headers
}

/** Checksum headers of the answer to a write. */
export function checksumHeaders(checksum: StoredObject['checksum']): ReplyHeaders {
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
