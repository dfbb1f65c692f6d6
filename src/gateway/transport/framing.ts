import type { IncomingHttpHeaders } from 'node:http'
import { nonsense } from '../errors.js'

/** Determines where a body ends: RFC 9112 section 6.3. */
export interface Framing {
  /**
   * Extracts the bytes of the body from the received bytes, as views where they are contiguous. Throws S3Error when
   * they do not match the announced framing.
   */
  decode(bytes: Buffer): Buffer
  readonly complete: boolean
  /** True when more bytes arrived than belong to the body. */
  readonly surplus: boolean
  /** Missing bytes of the body; undefined when unknown. */
  readonly left: number | undefined
  /** True when the body ends with the connection. */
  readonly endsWithConnection: boolean
}

/** Throws S3Error for invalid lengths. */
export function framingOf(method: string, { status, headers }: ResponseHead): Framing {
  if (method === 'HEAD' || status === 204 || status === 304) return new FixedFraming(0)
  const length = headers['content-length']
  const coding = headers['transfer-encoding']
  if (coding !== undefined) {
    // Two lengths in one answer allow response smuggling; this client requests no other transfer coding.
    if (length !== undefined || !/^chunked$/i.test(coding)) throw nonsense('answered with a transfer coding of its own')
    return new ChunkedFraming()
  }
  if (length === undefined) return openEnded
  const bytes = /^\d{1,16}$/.test(length) ? Number(length) : Number.NaN
  if (!Number.isSafeInteger(bytes)) throw nonsense('answered with an invalid length')
  return new FixedFraming(bytes)
}

class FixedFraming implements Framing {
  readonly endsWithConnection = false
  left: number
  surplus = false

  constructor(length: number) {
    this.left = length
  }

  get complete(): boolean {
    return this.left === 0
  }

  decode(bytes: Buffer): Buffer {
    const own = bytes.length > this.left ? bytes.subarray(0, this.left) : bytes
    this.left -= own.length
    this.surplus ||= own.length < bytes.length
    return own
  }
}

const openEnded: Framing = {
  decode: (bytes) => bytes,
  complete: false,
  surplus: false,
  left: undefined,
  endsWithConnection: true,
}

const LF = 0x0a

/** Longest line with the size of a chunk, which may carry extensions, and longest line of the trailer, bytes. */
const MAX_LINE_BYTES = 4096
const MAX_TRAILER_LINES = 64

/** 13 hex digits stay below 2^53. */
const SIZE_LINE = /^([0-9a-f]{1,13})[ \t]*(?:;[^\r\n]*)?\r\n$/i

/** Decodes `Transfer-Encoding: chunked` (RFC 9112 section 7.1). Needs memory for one line; skips trailers. */
class ChunkedFraming implements Framing {
  readonly endsWithConnection = false
  readonly left = undefined
  complete = false
  surplus = false
  #state: 'size' | 'data' | 'data-end' | 'trailer' = 'size'
  /** The part of a line that has arrived. */
  #line = ''
  /** Bytes missing from the present chunk. */
  #chunkLeft = 0
  #trailerLines = 0

  decode(bytes: Buffer): Buffer {
    const pieces: Buffer[] = []
    let at = 0
    while (at < bytes.length && !this.complete) {
      if (this.#state === 'data') {
        const piece = bytes.subarray(at, at + this.#chunkLeft)
        pieces.push(piece)
        at += piece.length
        this.#chunkLeft -= piece.length
        if (this.#chunkLeft === 0) this.#state = 'data-end'
      } else at = this.#takeLine(bytes, at)
    }
    this.surplus ||= at < bytes.length
    return pieces.length === 1 ? (pieces[0] as Buffer) : Buffer.concat(pieces)
  }

  #takeLine(bytes: Buffer, at: number): number {
    const end = bytes.indexOf(LF, at)
    const stop = end < 0 ? bytes.length : end + 1
    if (this.#line.length + stop - at > MAX_LINE_BYTES) throw broken()
    this.#line += bytes.toString('latin1', at, stop)
    if (end >= 0) {
      const line = this.#line
      this.#line = ''
      this.#endLine(line)
    }
    return stop
  }

  #endLine(line: string): void {
    if (this.#state === 'size') {
      const size = SIZE_LINE.exec(line)?.[1]
      if (size === undefined) throw broken()
      this.#chunkLeft = Number.parseInt(size, 16)
      this.#state = this.#chunkLeft > 0 ? 'data' : 'trailer'
    } else if (this.#state === 'data-end') {
      if (line !== '\r\n') throw broken()
      this.#state = 'size'
    } else if (line === '\r\n') this.complete = true
    else if (++this.#trailerLines > MAX_TRAILER_LINES) throw broken()
  }
}

function broken(): Error {
  return nonsense('answered with broken chunks')
}

export interface ResponseHead {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  /** True for HTTP/1.1 unless the answer announces the end of the connection. */
  readonly persistent: boolean
}

const STATUS_LINE = /^HTTP\/1\.([01]) ([1-5]\d\d)(?: [\t\x20-\x7e\x80-\xff]*)?$/

/**
 * The lines after the first one, RFC 9110 sections 5.1 and 5.5. Rejects white space before the colon and folded lines,
 * as RFC 9112 section 5 demands.
 */
const FIELDS = /^(?:\r\n[!#$%&'*+.^_`|~0-9A-Za-z-]+:[\t\x20-\x7e\x80-\xff]*)*$/

/**
 * Repeated fields of which only the first counts, as in node:http
 * (https://nodejs.org/docs/latest-v20.x/api/http.html#messageheaders).
 */
const ONCE = new Set(['age', 'content-type', 'etag', 'expires', 'last-modified', 'location', 'retry-after', 'server'])

/** Has no members that a field could be taken for. An object that `Object.create(null)` makes is a slow hash table. */
class Fields {}
Object.setPrototypeOf(Fields.prototype, null)
Reflect.deleteProperty(Fields.prototype, 'constructor')

/**
 * Parses the head of an answer.
 * @param text one character per byte, without the final empty line
 * @throws S3Error InternalError when the answer is not HTTP/1
 */
export function parseHead(text: string): ResponseHead {
  const first = endOfLine(text, 0)
  const status = STATUS_LINE.exec(text.slice(0, first))
  if (!status) throw nonsense('does not answer in HTTP/1.1')
  if (!FIELDS.test(text.slice(first))) throw nonsense('answered with a broken header')
  const headers = new Fields() as IncomingHttpHeaders
  for (let at = first + 2; at < text.length; ) {
    const end = endOfLine(text, at)
    const colon = text.indexOf(':', at)
    addField(headers, text.slice(at, colon).toLowerCase(), fieldValue(text, colon + 1, end))
    at = end + 2
  }
  return {
    status: Number(status[2]),
    headers,
    persistent: status[1] === '1' && !/\bclose\b/i.test(headers.connection ?? ''),
  }
}

function endOfLine(text: string, from: number): number {
  const end = text.indexOf('\r\n', from)
  return end < 0 ? text.length : end
}

/** `trim` would cut more than white space: the last byte of a character in UTF-8 can be one of Unicode's spaces. */
export function fieldValue(text: string, from = 0, to = text.length): string {
  let first = from
  let end = to
  while (first < end && isBlank(text.charCodeAt(first))) first++
  while (end > first && isBlank(text.charCodeAt(end - 1))) end--
  return text.slice(first, end)
}

function isBlank(code: number): boolean {
  return code === 0x20 || code === 0x09
}

function addField(headers: IncomingHttpHeaders, name: string, value: string): void {
  const known = headers[name]
  if (name === 'set-cookie') headers[name] = [...(headers[name] ?? []), value]
  else if (known === undefined) headers[name] = value
  else if (name === 'content-length') {
    if (known !== value) throw nonsense('answered with two lengths')
  } else if (!ONCE.has(name)) headers[name] = `${known}, ${value}`
}
