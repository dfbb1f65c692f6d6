import { createHmac, hash, timingSafeEqual } from 'node:crypto'

/**
 * The arithmetic of AWS Signature Version 4 for S3, for signing and verifying. Decides nothing about access.
 * https://docs.aws.amazon.com/AmazonS3/latest/API/sig-v4-header-based-auth.html
 */

export const ALGORITHM = 'AWS4-HMAC-SHA256'
export const UNSIGNED_PAYLOAD = 'UNSIGNED-PAYLOAD'
/** SHA-256 of the empty string, lower-case hex. */
export const EMPTY_SHA256 = 'e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855'

/** The word in the names of signature parameters: `X-Amz-Signature` or `X-Cloud-Signature`. */
export type Brand = 'Amz' | 'Cloud'

/**
 * The key for one day, region and service, 32 bytes. `date` is yyyymmdd. Computes four HMACs: callers that verify many
 * requests cache the result by scope.
 */
export function signingKey(secretAccessKey: string, date: string, region: string, service: string): Buffer {
  return hmac(hmac(hmac(hmac(`AWS4${secretAccessKey}`, date), region), service), 'aws4_request')
}

/** Lower-case hex. */
export function signature(key: Buffer, toSign: string): string {
  // A key of SHA-256 is never longer than a block, and a text of `stringToSign` never longer than the room for it.
  if (key.length > BLOCK || toSign.length > MAX_TEXT_BYTES / 3)
    return createHmac('sha256', key).update(toSign).digest('hex')
  return hmacOfText(key, toSign)
}

const BLOCK = 64
const MAX_TEXT_BYTES = 1536

/**
 * HMAC (RFC 2104) by two hashes in one call each, which take half of the time of createHmac, and leave no native
 * objects to the garbage collector.
 */
const hmacOfText = (() => {
  const inner = Buffer.alloc(BLOCK + MAX_TEXT_BYTES)
  const outer = Buffer.alloc(BLOCK + 32)
  return (key: Buffer, text: string): string => {
    for (let i = 0; i < BLOCK; i++) {
      const byte = key[i] ?? 0
      inner[i] = byte ^ 0x36
      outer[i] = byte ^ 0x5c
    }
    const bytes = inner.write(text, BLOCK)
    outer.write(hash('sha256', inner.subarray(0, BLOCK + bytes), 'hex'), BLOCK, 'hex')
    return hash('sha256', outer, 'hex')
  }
})()

function hmac(key: string | Buffer, data: string): Buffer {
  return createHmac('sha256', key).update(data).digest()
}

/** `20130524/us-east-1/s3/aws4_request` */
export function credentialScope(date: string, region: string, service: string): string {
  return `${date}/${region}/${service}/aws4_request`
}

/** 20130524T000000Z */
export function formatTimestamp(date: Date): string {
  return `${date.toISOString().slice(0, 19).replace(/[-:]/g, '')}Z`
}

const UNRESERVED_OR_SLASH = /^[A-Za-z0-9\-._~/]*$/
const UNRESERVED = /^[A-Za-z0-9\-._~]*$/

/**
 * Percent-encodes the UTF-8 bytes of `text` as SigV4 demands: everything except letters, digits, `-._~`, and `/` with
 * `keepSlash`.
 */
export function uriEncode(text: string, keepSlash = false): string {
  return (keepSlash ? UNRESERVED_OR_SLASH : UNRESERVED).test(text) ? text : encodeBytes(Buffer.from(text), keepSlash)
}

/** `%00`..`%FF`, or the character itself where it needs no encoding. */
const ENCODED: readonly string[] = Array.from({ length: 256 }, (_, byte) => {
  const character = String.fromCharCode(byte)
  return UNRESERVED.test(character) ? character : `%${byte.toString(16).toUpperCase().padStart(2, '0')}`
})
const SLASH = 0x2f

function encodeBytes(bytes: Uint8Array, keepSlash: boolean): string {
  let out = ''
  for (const byte of bytes) out += keepSlash && byte === SLASH ? '/' : ENCODED[byte]
  return out
}

const ESCAPE = /%([0-9A-Fa-f]{2})/g

/**
 * Decodes once and encodes canonically. `raw` is as received: percent-encoded, one character per byte. A `%` that
 * starts no escape stands for itself.
 */
function recode(raw: string, keepSlash: boolean): string {
  if ((keepSlash ? UNRESERVED_OR_SLASH : UNRESERVED).test(raw)) return raw
  const decoded = raw.replace(ESCAPE, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)))
  return encodeBytes(Buffer.from(decoded, 'latin1'), keepSlash)
}

/** The canonical form of a received path. S3 encodes once and normalises nothing: `//`, `.` and `..` stay. */
export function canonicalPath(rawPath: string): string {
  return rawPath === '' ? '/' : recode(rawPath, true)
}

/**
 * The canonical form of a received query, without `?`. Sorted by encoded name, then value; `acl` becomes `acl=`;
 * repeated parameters stay. A literal `+` means a space, as in every query decoder.
 * @param leaveOut true for the encoded name of a parameter that is not part of the signed query
 */
export function canonicalQuery(rawQuery: string, leaveOut?: (name: string) => boolean): string {
  if (rawQuery === '') return ''
  const pairs: [name: string, value: string][] = []
  for (const pair of rawQuery.split('&')) {
    if (pair === '') continue
    const at = pair.indexOf('=')
    const name = recodeParameter(at < 0 ? pair : pair.slice(0, at))
    if (leaveOut?.(name)) continue
    pairs.push([name, at < 0 ? '' : recodeParameter(pair.slice(at + 1))])
  }
  pairs.sort(comparePairs)
  return pairs.map(([name, value]) => `${name}=${value}`).join('&')
}

function recodeParameter(raw: string): string {
  return recode(raw.includes('+') ? raw.replaceAll('+', '%20') : raw, false)
}

type Pair = readonly [name: string, value: string]

/** Both are ASCII once encoded, so the order of strings is the order of bytes. */
function comparePairs([nameA, valueA]: Pair, [nameB, valueB]: Pair): number {
  if (nameA !== nameB) return nameA < nameB ? -1 : 1
  if (valueA === valueB) return 0
  return valueA < valueB ? -1 : 1
}

interface CanonicalRequest {
  readonly method: string
  /** Canonical: see `canonicalPath`; or `uriEncode(path, true)`. */
  readonly path: string
  /** Canonical: see `canonicalQuery`. */
  readonly query: string
  /** All signed headers, in any order and case. Repeated headers stay separate. Values have one character per byte. */
  readonly headers: readonly Pair[]
  /** Lower-case names, ascending, joined with `;`. */
  readonly signedHeaders: string
  /** Lower-case hex, or one of the words that replace it. */
  readonly payloadHash: string
}

/** The canonical request, one character per byte. */
export function canonicalRequest(parts: CanonicalRequest): string {
  const names = parts.signedHeaders.split(';')
  const values = names.map((): string | undefined => undefined)
  for (const [name, value] of parts.headers) {
    const at = names.indexOf(name.toLowerCase())
    if (at >= 0) values[at] = values[at] === undefined ? squeeze(value) : `${values[at]},${squeeze(value)}`
  }
  let lines = ''
  for (let i = 0; i < names.length; i++) lines += `${names[i]}:${values[i] ?? ''}\n`
  return `${parts.method}\n${parts.path}\n${parts.query}\n${lines}\n${parts.signedHeaders}\n${parts.payloadHash}`
}

/** Trims the text and replaces runs of spaces by one space. */
function squeeze(value: string): string {
  const trimmed = value.trim()
  return trimmed.includes('  ') ? trimmed.replace(/ {2,}/g, ' ') : trimmed
}

/**
 * @param algorithm `AWS4-HMAC-SHA256`
 * @param timestamp 20130524T000000Z
 * @param scope see `credentialScope`
 */
export function stringToSign(algorithm: string, timestamp: string, scope: string, canonical: string): string {
  return `${algorithm}\n${timestamp}\n${scope}\n${hash('sha256', Buffer.from(canonical, 'latin1'), 'hex')}`
}

/** Compares two texts in a time that depends only on their lengths. Never throws. */
export function timingSafeEqualHex(a: string, b: string): boolean {
  const x = Buffer.from(a)
  const y = Buffer.from(b)
  return x.length === y.length && timingSafeEqual(x, y)
}

export interface Presign {
  readonly brand: Brand
  readonly method: string
  /** Decoded path, such as `/bucket/a key`. */
  readonly path: string
  /** Host that clients will send, with the port unless it is the default of the scheme. */
  readonly host: string
  /** Further parameters, decoded. */
  readonly query?: readonly Pair[]
  readonly accessKeyId: string
  readonly secretAccessKey: string
  readonly region: string
  /** Seconds, 1..604800. */
  readonly expires: number
  readonly now: Date
  /** Default `s3`. */
  readonly service?: string
}

/**
 * The query of a presigned URL, without `?`. The path to use with it is `uriEncode(path, true)`. Signs only `host`, and
 * leaves the body unsigned.
 */
export function presignQuery(request: Presign): string {
  const timestamp = formatTimestamp(request.now)
  const date = timestamp.slice(0, 8)
  const service = request.service ?? 's3'
  const scope = credentialScope(date, request.region, service)
  const prefix = `X-${request.brand}-`
  const parameters: Pair[] = [
    ...(request.query ?? []),
    [`${prefix}Algorithm`, ALGORITHM],
    [`${prefix}Credential`, `${request.accessKeyId}/${scope}`],
    [`${prefix}Date`, timestamp],
    [`${prefix}Expires`, String(request.expires)],
    [`${prefix}SignedHeaders`, 'host'],
  ]
  const query = canonicalQuery(parameters.map(([name, value]) => `${uriEncode(name)}=${uriEncode(value)}`).join('&'))
  const canonical = canonicalRequest({
    method: request.method,
    path: uriEncode(request.path, true),
    query,
    headers: [['host', request.host]],
    signedHeaders: 'host',
    payloadHash: UNSIGNED_PAYLOAD,
  })
  const key = signingKey(request.secretAccessKey, date, request.region, service)
  return `${query}&${prefix}Signature=${signature(key, stringToSign(ALGORITHM, timestamp, scope, canonical))}`
}
