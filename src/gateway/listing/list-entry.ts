import { isRecord } from '../calls/rpc-reply.js'
import type { GatewayFeatures, GatewayObject } from '../gateway.js'
import { DEFAULT_TYPE, stampOf, unquoted } from '../object-facts.js'
import { isTime } from '../time.js'

/** One entry of web.ListObjects, as sent. */
export interface RawEntry {
  /** Full key, or full prefix including its final slash. */
  readonly name: string
  readonly size: number
  readonly lastModified: string
  readonly contentType: string
  readonly isPrefix: boolean
  readonly etag?: string
  readonly generation?: string
  readonly cold?: true
}

/** Throws TypeError for an invalid entry. */
export function readEntry(value: unknown): RawEntry {
  if (!isRecord(value)) throw new TypeError('an entry of a listing is not an object')
  const { name, size, lastModified, contentType, etag, generation, isPrefix, cold } = value
  if (typeof name !== 'string' || name === '') throw new TypeError('an entry of a listing has no name')
  if (!isTime(lastModified)) throw new TypeError('an entry of a listing has no time')
  if (typeof size !== 'number' || !Number.isSafeInteger(size) || size < 0)
    throw new TypeError('an entry of a listing has no size')
  return {
    name,
    size,
    lastModified,
    contentType: typeof contentType === 'string' ? contentType : '',
    // Legacy gateways mark a prefix only by Go's zero time; a folder object has a real time.
    isPrefix: isPrefix === true || (name.endsWith('/') && lastModified.startsWith('0001-01-01T')),
    etag: typeof etag === 'string' && etag !== '' ? etag : undefined,
    generation: typeof generation === 'string' || typeof generation === 'number' ? String(generation) : undefined,
    cold: cold === true ? true : undefined,
  }
}

export function toObject(features: GatewayFeatures, entry: RawEntry): GatewayObject {
  const { name: key, size, lastModified, generation } = entry
  return {
    key,
    size,
    lastModified,
    contentType: entry.contentType || DEFAULT_TYPE,
    stamp: stampOf(features, { key, size, lastModified, generation }),
    // Gateways without paged listings may list a random ETag.
    etag: features.pagedListing ? unquoted(entry.etag) : undefined,
    cold: entry.cold,
  }
}
