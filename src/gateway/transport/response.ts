import type { IncomingHttpHeaders } from 'node:http'

/** An answer whose head has arrived and whose body waits. It has to be read, drained or destroyed, or its connection is never free again. */
export interface RestResponse {
  readonly status: number
  /** As node:http gives them: lower-case names, one character for each byte. */
  readonly headers: IncomingHttpHeaders
  /** Has the body delivered, once; from within this call on. At most `ahead` (>= 1) chunks are lent at a time. */
  read(receiver: BodyReceiver, ahead: number): void
  /** Nobody wants what is left of the body: a short rest is read away, so that the connection can be used again; a longer one is cut. */
  drain(): void
  /** Gives the answer up. What was lent stays good until it is given back. Safe at any time. */
  destroy(): void
}

/** Takes a body. After `end` or `failed` nothing more comes. */
export interface BodyReceiver {
  /** The chunk is lent: its bytes change some time after `done` was called, which may be at once or later, in any order. */
  data(chunk: Buffer, done: () => void): void
  /** The body is complete; chunks may still be lent. */
  end(): void
  /** Error of the connection, or S3Error for an answer that is not HTTP. */
  failed(error: unknown): void
}

/** A rest of so many bytes is read to keep the connection; for more a new connection is cheaper. */
export const DRAIN_BYTES = 64 * 1024
/** A short rest that takes longer is not worth waiting for, ms. */
export const DRAIN_MS = 5000

/** The connection ended before the answer did. */
export function lost(): Error {
  return Object.assign(new Error('the connection was closed'), { code: 'ECONNRESET' })
}
