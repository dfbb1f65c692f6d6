import type { IncomingHttpHeaders } from 'node:http'
import { listsEtag } from '../../common/etags.js'
import type { ByteRange } from '../../gateway/gateway.js'
import type { StoredObject } from '../../objects/store.js'
import { parseRange } from './range.js'

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
