import { isRecord } from '../../../common/json.js'
import type { GatewayObject } from '../../api/gateway.js'
import type { GatewayFeatures } from '../../api/gateway-features.js'
import { DEFAULT_TYPE, isTime, readChecksum, readEtag, revisionOf, unquoted } from '../object-facts.js'

/** Longest entry, bytes: a key of 1024 bytes is at most 6 KiB of JSON. */
const MAX_ENTRY_BYTES = 64 * 1024

/** Largest part of a reply outside the entries, bytes. */
const MAX_ENVELOPE_BYTES = 64 * 1024

const QUOTE = 0x22
const BACKSLASH = 0x5c
const OPEN_BRACE = 0x7b
const CLOSE_BRACE = 0x7d
const OPEN_BRACKET = 0x5b
const CLOSE_BRACKET = 0x5d
const COLON = 0x3a

/**
 * Parses the reply of web.ListObjects while it arrives: `{"result":{"objects":[entry, entry, ...], ...}, ...}`. Returns
 * entries in batches, and the rest (the envelope with an empty array) at the end. A listing of a million keys has 140
 * MB: parsing it whole would block the server for a second and take half a gigabyte.
 */
export class ListingScanner {
  #depth = 0
  #inString = false
  #escaped = false
  /** True inside result.objects. */
  #inEntries = false
  /** The last name before a colon, by depth. */
  readonly #names: string[] = []
  /** The last string outside the entries. The relevant names are ASCII. */
  #string = ''
  readonly #envelope: Buffer[] = []
  #envelopeBytes = 0
  /** Bytes after the last complete entry, from earlier chunks. */
  #rest: Buffer = Buffer.alloc(0)

  /**
   * Returns the entries that this chunk completes. Throws SyntaxError or RangeError when the reply is not a listing.
   */
  push(chunk: Buffer): unknown[] {
    const found: unknown[] = []
    let at = 0
    while (at < chunk.length) {
      if (this.#inEntries) at = this.#entries(chunk, at, found)
      else at = this.#outside(chunk, at)
    }
    return found
  }

  /** Returns the reply without its entries. Throws SyntaxError when it is incomplete. */
  end(): Readonly<Record<string, unknown>> {
    const parsed: unknown = JSON.parse(Buffer.concat(this.#envelope).toString('utf8'))
    if (!isRecord(parsed)) throw new SyntaxError('the reply is not a JSON object')
    return parsed
  }

  /** Scans up to and including the `[` that opens the entries. */
  #outside(chunk: Buffer, from: number): number {
    for (let i = from; i < chunk.length; i++) {
      const byte = chunk[i] as number
      if (this.#inString) {
        if (this.#escaped) this.#escaped = false
        else if (byte === BACKSLASH) this.#escaped = true
        else if (byte === QUOTE) this.#inString = false
        else this.#string += String.fromCharCode(byte)
      } else if (byte === QUOTE) {
        this.#inString = true
        this.#string = ''
      } else if (byte === COLON) this.#names[this.#depth] = this.#string
      else if (byte === OPEN_BRACE || byte === OPEN_BRACKET) {
        this.#depth++
        if (byte === OPEN_BRACKET && this.#depth === 3 && this.#names[1] === 'result' && this.#names[2] === 'objects') {
          this.#inEntries = true
          this.#keep(chunk.subarray(from, i + 1))
          return i + 1
        }
      } else if (byte === CLOSE_BRACE || byte === CLOSE_BRACKET) this.#depth--
    }
    this.#keep(chunk.subarray(from))
    return chunk.length
  }

  #keep(bytes: Buffer): void {
    this.#envelopeBytes += bytes.length
    if (this.#envelopeBytes > MAX_ENVELOPE_BYTES) throw new RangeError('the reply is not a listing')
    this.#envelope.push(Buffer.from(bytes))
  }

  #entries(chunk: Buffer, from: number, found: unknown[]): number {
    let inString = this.#inString
    let escaped = this.#escaped
    let depth = this.#depth
    let complete = -1
    let i = from
    for (; i < chunk.length; i++) {
      const byte = chunk[i]
      if (inString) {
        if (escaped) escaped = false
        else if (byte === BACKSLASH) escaped = true
        else if (byte === QUOTE) inString = false
      } else if (byte === QUOTE) inString = true
      else if (byte === OPEN_BRACE || byte === OPEN_BRACKET) depth++
      else if (byte === CLOSE_BRACE || byte === CLOSE_BRACKET) {
        depth--
        if (depth === 3) complete = i + 1
        if (depth < 3) break
      }
    }
    this.#inString = inString
    this.#escaped = escaped
    const ended = depth < 3
    this.#depth = ended ? 3 : depth
    if (complete >= 0) this.#parse(chunk.subarray(from, complete), found)
    const left = chunk.subarray(complete >= 0 ? complete : from, i)
    if (ended) {
      if (Buffer.concat([this.#rest, left]).toString('latin1').trim() !== '')
        throw new SyntaxError('the listing is broken')
      this.#inEntries = false
      // The closing bracket is scanned again as part of the envelope.
      return i
    }
    this.#rest = Buffer.concat([this.#rest, left])
    if (this.#rest.length > MAX_ENTRY_BYTES) throw new RangeError('an entry of the listing is too long')
    return chunk.length
  }

  /** Parses many entries at once: one call of JSON.parse costs as much as twenty short entries. */
  #parse(bytes: Buffer, found: unknown[]): void {
    const text = (this.#rest.length > 0 ? Buffer.concat([this.#rest, bytes]) : bytes).toString('utf8')
    this.#rest = Buffer.alloc(0)
    const list: unknown = JSON.parse(`[${text.replace(/^[\s,]+/, '')}]`)
    if (Array.isArray(list)) for (const entry of list) found.push(entry)
  }
}

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
  readonly checksum?: string
  readonly cold?: true
}

/** Throws TypeError for an invalid entry. */
export function readEntry(value: unknown): RawEntry {
  if (!isRecord(value)) throw new TypeError('an entry of a listing is not an object')
  const { name, size, lastModified, contentType, etag, generation, checksum, isPrefix, cold } = value
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
    checksum: typeof checksum === 'string' ? checksum : undefined,
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
    revision: revisionOf(features, { key, size, lastModified, generation }),
    // Gateways without paged listings may list a random ETag.
    ...(features.pagedListing ? readEtag(unquoted(entry.etag)) : {}),
    checksum: readChecksum(entry.checksum),
    cold: entry.cold,
  }
}
