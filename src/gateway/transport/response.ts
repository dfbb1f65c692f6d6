import type { IncomingHttpHeaders } from 'node:http'
import { timedOut } from '../errors.js'

/**
 * An answer whose head has arrived and whose body waits. The receiver reads, drains or destroys it; otherwise its
 * connection is never freed.
 */
export interface RestResponse {
  readonly status: number
  /** Headers in the form of node:http: lower-case names, one character per byte. */
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
export const MAX_DRAIN_BYTES = 64 * 1024

/** Longest time spent on reading a short rest, ms. */
export const MAX_DRAIN_MS = 5000

/** The connection ended before the answer did. */
export function lost(): Error {
  return Object.assign(new Error('the connection was closed'), { code: 'ECONNRESET' })
}

/**
 * Reads the body of an answer into memory. Resolves undefined for more than `max` bytes. Rejects with the error of the
 * connection, or when no byte arrives for `idleMs`.
 */
export function readAll(response: RestResponse, max: number, idleMs: number): Promise<Buffer | undefined> {
  const whole = response.whole()
  if (whole) return Promise.resolve(whole.length > max ? undefined : whole)
  return new Promise((resolve, reject) => {
    const { headers } = response
    const declared = headers['content-length'] === undefined ? max + 1 : Number(headers['content-length'])
    // In place, where the length is known: the pieces of a long answer are large garbage.
    const whole = declared <= max ? Buffer.allocUnsafeSlow(declared) : undefined
    const chunks: Buffer[] = []
    let size = 0
    const stop = () => {
      clearTimeout(timer)
      response.destroy()
    }
    const timer = setTimeout(() => {
      reject(timedOut('an answer'))
      stop()
    }, idleMs)
    const receiver = {
      data(chunk: Buffer, done: () => void) {
        if (whole) chunk.copy(whole, size)
        else chunks.push(Buffer.from(chunk))
        size += chunk.length
        if (size > max) {
          resolve(undefined)
          stop()
          return
        }
        timer.refresh()
        done()
      },
      end() {
        clearTimeout(timer)
        // An answer without a body may declare a length, and what it lacks was never written.
        resolve(whole?.subarray(0, size) ?? Buffer.concat(chunks, size))
      },
      failed(error: unknown) {
        clearTimeout(timer)
        reject(error)
      },
    }
    response.read(receiver, 0)
  })
}

/** Most chunks that wait for the reader of `chunksOf`. */
const MAX_CHUNKS_AHEAD = 2

/**
 * The chunks of a body while they arrive, each valid until the next one is asked for. A reader that leaves early
 * destroys the answer. Rejects with the error of the connection, or when no byte arrives for `idleMs` while one is
 * awaited.
 */
export async function* chunksOf(response: RestResponse, idleMs: number): AsyncGenerator<Buffer> {
  const whole = response.whole()
  if (whole) {
    yield whole
    return
  }
  const arrived: { readonly chunk: Buffer; readonly done: () => void }[] = []
  let over: { readonly error?: unknown } | undefined
  let wake = () => {}
  const finish = (end: { readonly error?: unknown }) => {
    over ??= end
    wake()
  }
  const receiver: BodyReceiver = {
    data(chunk, done) {
      arrived.push({ chunk, done })
      wake()
    },
    end: () => finish({}),
    failed: (error) => finish({ error }),
  }
  try {
    response.read(receiver, MAX_CHUNKS_AHEAD)
    for (;;) {
      const next = arrived.shift()
      if (next) {
        yield next.chunk
        next.done()
      } else if (over) {
        if ('error' in over) throw over.error
        return
      } else {
        const timer = setTimeout(finish, idleMs, { error: timedOut('an answer') })
        await new Promise<void>((resolve) => {
          wake = resolve
        })
        clearTimeout(timer)
      }
    }
  } finally {
    response.destroy()
  }
}
