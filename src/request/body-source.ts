import type { IncomingMessage } from 'node:http'
import { S3Error } from '../errors/s3-error.js'

/** Where the bytes of a body come from, on demand. */
export interface BodySource {
  /** The next bytes, or undefined at the end; a promise only if one has to wait for them. */
  next(): Buffer | undefined | Promise<Buffer | undefined>
  /** Lets go of it, read to its end or not. */
  close(): void
}

/**
 * The body of a request as it arrives. Nothing is read ahead of `next` but what Node buffers of its own accord. After `close` the rest of a
 * message that is still arriving is for whoever owns the connection to resume or destroy.
 */
export class IncomingSource implements BodySource {
  readonly #incoming: IncomingMessage
  readonly #idleMs: number
  #ended = false
  #failure: S3Error | undefined
  #wake: (() => void) | undefined
  #timer: NodeJS.Timeout | undefined

  /** @param idleMs for how long nothing may arrive while somebody waits, ms */
  constructor(incoming: IncomingMessage, idleMs: number) {
    if (incoming.readableDidRead) {
      throw new S3Error('InternalError', {
        cause: new Error(
          'Something ahead of dealgate has read the body of the request: mount it before any body parser.',
        ),
      })
    }
    this.#incoming = incoming
    this.#idleMs = idleMs
    if (incoming.destroyed) this.#onClose()
    incoming.on('readable', this.#onReadable)
    incoming.on('end', this.#onEnd)
    incoming.on('error', this.#onClose)
    incoming.on('close', this.#onClose)
  }

  next(): Buffer | undefined | Promise<Buffer | undefined> {
    if (this.#failure !== undefined) throw this.#failure
    return (this.#incoming.read() as Buffer | null) ?? (this.#ended ? undefined : this.#wait())
  }

  close(): void {
    clearTimeout(this.#timer)
    this.#incoming.off('readable', this.#onReadable)
    this.#incoming.off('end', this.#onEnd)
    this.#incoming.off('close', this.#onClose)
    // 'error' keeps its listener: without one, a connection that dies later would end the process.
  }

  async #wait(): Promise<Buffer | undefined> {
    for (;;) {
      await new Promise<void>((resolve) => {
        this.#wake = resolve
        if (this.#timer === undefined) this.#timer = setTimeout(this.#onIdle, this.#idleMs)
        else this.#timer.refresh()
      })
      if (this.#failure !== undefined) throw this.#failure
      const bytes = this.#incoming.read() as Buffer | null
      if (bytes !== null) return bytes
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

  /** Fires also while the sink is the slow one: then nobody waits, and it means nothing. */
  readonly #onIdle = (): void => {
    if (this.#wake === undefined) return
    this.#failure ??= new S3Error('RequestTimeout', {
      message: `No byte of the body arrived for ${this.#idleMs / 1000} seconds.`,
    })
    this.#onReadable()
  }
}

/** A body that has been read before, or that holds nothing. */
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
