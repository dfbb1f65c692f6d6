import type { IncomingMessage } from 'node:http'
import { S3Error } from '../../../common/errors/s3-error.js'
import { freeBuffer } from '../../../common/free-buffer.js'
import type { Limits } from '../../api/limits.js'

/** Supplies the bytes of a body on demand. */
export interface BodySource {
  /** Returns the next bytes, or undefined at the end. Returns a promise only if no bytes are buffered. */
  next(): Buffer | undefined | Promise<Buffer | undefined>
  /** Releases the source, at the end of the body or before. */
  close(): void
  /** Called with bytes of `next` that are used no more; absent where others may have them. */
  used?(bytes: Buffer): void
}

/**
 * The body of a request as it arrives. Reads nothing before `next` is called, except what Node buffers itself. After
 * `close`, the owner of the connection must resume or destroy a message that is still arriving.
 */
export class IncomingSource implements BodySource {
  readonly #incoming: IncomingMessage
  readonly #idleMs: number
  readonly #pace: Pace
  #ended = false
  #failure: S3Error | undefined
  #wake: (() => void) | undefined
  #timer: NodeJS.Timeout | undefined

  /** @param bodyLimits idle timeout while the server waits for bytes, and minimum rate of the whole body */
  constructor(incoming: IncomingMessage, bodyLimits: BodyLimits) {
    if (incoming.readableDidRead) {
      // A 500 would make clients retry in vain.
      throw new S3Error('InvalidRequest', {
        message:
          'The application has read the body of the request before this endpoint. Mount dealgate before body parsers such as express.json().',
      })
    }
    this.#incoming = incoming
    this.#idleMs = bodyLimits.bodyIdleMs
    this.#pace = new Pace(bodyLimits)
    if (incoming.destroyed) this.#onClose()
    incoming.on('readable', this.#onReadable)
    incoming.on('end', this.#onEnd)
    incoming.on('error', this.#onClose)
    incoming.on('close', this.#onClose)
  }

  next(): Buffer | undefined | Promise<Buffer | undefined> {
    if (this.#failure !== undefined) throw this.#failure
    const bytes = this.#incoming.read() as Buffer | null
    if (bytes === null) return this.#ended ? undefined : this.#wait()
    this.#pace.arrived(bytes.length)
    return bytes
  }

  close(): void {
    clearTimeout(this.#timer)
    this.#incoming.off('readable', this.#onReadable)
    this.#incoming.off('end', this.#onEnd)
    this.#incoming.off('close', this.#onClose)
    // The 'error' listener stays: without it, a later error of the connection would end the process.
  }

  /** Chunks of 64 KiB left to the garbage collector are a fifth of what an unsigned upload costs. */
  used(bytes: Buffer): void {
    // The application that this server is mounted in may watch the bytes of its requests.
    if (this.#incoming.listenerCount('data') === 0) freeBuffer(bytes)
  }

  async #wait(): Promise<Buffer | undefined> {
    for (;;) {
      const since = performance.now()
      await new Promise<void>((resolve) => {
        this.#wake = resolve
        if (this.#timer === undefined) this.#timer = setTimeout(this.#onIdle, this.#idleMs)
        else this.#timer.refresh()
      })
      this.#pace.waited(performance.now() - since)
      if (this.#failure !== undefined) throw this.#failure
      const bytes = this.#incoming.read() as Buffer | null
      if (bytes !== null) {
        this.#pace.arrived(bytes.length)
        this.#pace.judge()
        return bytes
      }
      if (this.#ended) return undefined
    }
  }

  readonly #onReadable = (): void => {
    const wake = this.#wake
    this.#wake = undefined
    wake?.()
  }

  readonly #onEnd = (): void => {
    this.#ended = true
    this.#onReadable()
  }

  readonly #onClose = (): void => {
    if (!this.#ended) {
      this.#failure ??= new S3Error('IncompleteBody', { message: 'The connection ended before the body did.' })
    }
    this.#onReadable()
  }

  /** The timer also fires while the sink is slow. Then `next` is not waiting, and the event is ignored. */
  readonly #onIdle = (): void => {
    if (this.#wake === undefined) return
    this.#failure ??= new S3Error('RequestTimeout', {
      message: `No byte of the body arrived for ${this.#idleMs / 1000} seconds.`,
    })
    this.#onReadable()
  }
}

/** A body that has been read already, or an empty one. */
export class BufferSource implements BodySource {
  #bytes: Buffer | undefined

  constructor(bytes: Buffer | undefined) {
    this.#bytes = bytes
  }

  next(): Buffer | undefined {
    const bytes = this.#bytes
    this.#bytes = undefined
    return bytes?.length ? bytes : undefined
  }

  close(): void {
    this.#bytes = undefined
  }
}

export type BodyLimits = Pick<Limits, 'bodyIdleMs' | 'minBodyRate'>

/**
 * Enforces the minimum rate of a body. A client that occasionally sends a byte never reaches the idle timeout, and
 * could hold its connection forever. Only the time in which the server waits for the client counts, in periods of twice
 * `bodyIdleMs`: a client may pause up to the idle timeout and catch up.
 */
export class Pace {
  readonly #periodMs: number
  readonly #minBytes: number
  readonly #rate: number
  #waitedMs = 0
  #bytes = 0

  constructor({ bodyIdleMs, minBodyRate }: BodyLimits) {
    this.#periodMs = 2 * bodyIdleMs
    this.#rate = minBodyRate
    this.#minBytes = (minBodyRate * this.#periodMs) / 1000
  }

  arrived(bytes: number): void {
    this.#bytes += bytes
  }

  waited(ms: number): void {
    this.#waitedMs += ms
  }

  /** Throws S3Error RequestTimeout at the end of a period in which too few bytes have arrived. */
  judge(): void {
    if (this.#waitedMs < this.#periodMs) return
    if (this.#bytes < this.#minBytes) {
      throw new S3Error('RequestTimeout', {
        message: `The body arrives more slowly than ${this.#rate} bytes per second.`,
      })
    }
    this.#waitedMs = 0
    this.#bytes = 0
  }
}
