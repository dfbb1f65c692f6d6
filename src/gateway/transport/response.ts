import type { IncomingHttpHeaders } from 'node:http'

/**
 * An answer whose head has arrived and whose body waits. The receiver reads, drains or destroys it; otherwise its
 * connection is never freed.
 */
export interface RestResponse {
  readonly status: number
  /** As in node:http: lower-case names, one character per byte. */
  readonly headers: IncomingHttpHeaders
  /** Takes the whole body, if it has arrived already and nothing has read it. */
  whole(): Buffer | undefined
  /**
   * Delivers the body, once, starting within this call. At most `ahead` chunks are lent at a time; with 0, the bytes of
   * a chunk may change after the call of `data`, and no buffer is made for them.
   */
  read(receiver: BodyReceiver, ahead: number): void
  /** Discards the rest of the body. Reads a short rest, so that the connection can be reused, and cuts a longer one. */
  drain(): void
  /** Aborts the answer. Lent chunks stay valid until they are returned. Safe at any time. */
  destroy(): void
}

/** Receives a body. Nothing follows `end` or `failed`. */
export interface BodyReceiver {
  /**
   * Takes a lent chunk. Its bytes change after `done` was called, which may happen during the call or later, in any
   * order.
   */
  data(chunk: Buffer, done: () => void): void
  /** The body is complete. Chunks may still be lent. */
  end(): void
  /** The error of the connection, or S3Error for an answer that is not HTTP. */
  failed(error: unknown): void
}

/** Largest rest that is read to keep the connection, bytes. For more, a new connection is cheaper. */
export const DRAIN_BYTES = 64 * 1024
/** Longest time spent on reading a short rest, ms. */
export const DRAIN_MS = 5000

/** The connection ended before the answer did. */
export function lost(): Error {
  return Object.assign(new Error('the connection was closed'), { code: 'ECONNRESET' })
}
