import type { IncomingMessage, ServerResponse } from 'node:http'
import type { BodyGate } from './receive.js'

/**
 * The rest of a refused body is read for at most this long, ms, and up to this many bytes: a client that is still
 * sending would otherwise lose the answer.
 */
const LINGER_MS = 2_000
const LINGER_BYTES = 16 * 1024 * 1024

/** Up to this many unread bytes are discarded so that the connection can be reused. */
const SMALL_BODY = 256 * 1024

export type HeaderList = (string | number)[]

/** A request that has its response yet to come. */
export interface Answerable {
  readonly request: IncomingMessage
  readonly response: ServerResponse
  readonly body: BodyGate
}

/**
 * Sends a response in one piece. Handles an unread request body so that neither side hangs or takes it for the next
 * request.
 */
export function reply(
  { request, response, body: gate }: Answerable,
  status: number,
  headers: HeaderList,
  body: Buffer = Buffer.alloc(0),
): void {
  const cutShort = request.destroyed && !request.complete
  if (response.headersSent || response.destroyed || cutShort) {
    response.destroy()
    return
  }
  const bodiless = request.method === 'HEAD' || status === 304
  const length: HeaderList = status === 304 ? [] : ['Content-Length', body.length]
  const all = [...headers, ...length]
  const givenUp = request.readableDidRead && !request.complete
  if (!gate.waiting && !givenUp && (request.complete || unread(request) <= SMALL_BODY)) {
    response.writeHead(status, all)
    response.end(bodiless ? undefined : body)
    return
  }
  response.writeHead(status, [...all, 'Connection', 'close'])
  if (bodiless || body.length === 0) response.flushHeaders()
  else response.write(body)
  linger(request, () => response.end())
}

function unread(request: IncomingMessage): number {
  if (request.headers['transfer-encoding'] !== undefined) return Number.POSITIVE_INFINITY
  return Number(request.headers['content-length'] ?? 0)
}

/** Keeps reading for a while, so that the connection is not reset before the client has read the answer. */
function linger(request: IncomingMessage, done: () => void): void {
  let bytes = 0
  const finish = (): void => {
    clearTimeout(timer)
    request.off('data', count).off('end', finish).off('close', finish)
    request.pause()
    done()
  }
  const count = (chunk: Buffer): void => {
    bytes += chunk.length
    if (bytes > LINGER_BYTES) finish()
  }
  const timer = setTimeout(finish, LINGER_MS)
  request.on('data', count).on('end', finish).on('close', finish)
  request.resume()
}

/** First and last byte position. */
export interface Span {
  readonly first: number
  readonly last: number
}

const SINGLE = /^bytes=(\d*)-(\d*)$/i

/**
 * Parses a Range header (RFC 9110, 14.2) for a body of `size` bytes. Returns undefined when the whole body is to be
 * sent: without a range, with several ranges, or when the header is not understood. 'unsatisfiable' stands for 416.
 */
export function parseRange(header: string | undefined, size: number): Span | 'unsatisfiable' | undefined {
  const found = header === undefined ? null : SINGLE.exec(header.trim())
  if (found === null) return undefined
  const [, from = '', to = ''] = found
  if (from === '') {
    if (to === '') return undefined
    const suffix = Math.min(Number(to), size)
    return suffix === 0 ? 'unsatisfiable' : { first: size - suffix, last: size - 1 }
  }
  const first = Number(from)
  const last = to === '' ? size - 1 : Math.min(Number(to), size - 1)
  if (to !== '' && Number(to) < first) return undefined
  return first >= size ? 'unsatisfiable' : { first, last }
}

/** Bytes of a block. */
const BLOCK = 64 * 1024

/**
 * Keeps bytes in blocks of 64 KiB, however small the chunks in which they arrive: each chunk by itself would cost some
 * 100 bytes more, and a client chooses their size.
 */
export class Blocks {
  readonly #full: Buffer[] = []
  #last = Buffer.alloc(0)
  #used = 0
  #size = 0

  /** Bytes in all. */
  get size(): number {
    return this.#size
  }

  add(chunk: Uint8Array): void {
    for (let at = 0; at < chunk.length; ) {
      if (this.#used === this.#last.length) this.#begin(chunk.length - at)
      const taken = Math.min(chunk.length - at, this.#last.length - this.#used)
      this.#last.set(chunk.subarray(at, at + taken), this.#used)
      this.#used += taken
      at += taken
    }
    this.#size += chunk.length
  }

  /** The bytes, in blocks of 64 KiB at most. */
  all(): Buffer[] {
    return this.#used === 0 ? [...this.#full] : [...this.#full, this.#last.subarray(0, this.#used)]
  }

  /** Begins a block: the first one is small, because most bodies are. */
  #begin(wanted: number): void {
    if (this.#used > 0 && this.#used < BLOCK) {
      const larger = Buffer.allocUnsafe(BLOCK)
      larger.set(this.#last)
      this.#last = larger
      return
    }
    if (this.#used > 0) this.#full.push(this.#last)
    this.#last = Buffer.allocUnsafe(this.#size === 0 ? Math.min(BLOCK, Math.max(1024, wanted)) : BLOCK)
    this.#used = 0
  }
}
