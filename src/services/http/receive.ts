import type { IncomingMessage, ServerResponse } from 'node:http'

/** A body did not arrive: its client ended early, or sent nothing for too long. */
export class ReceiveError extends Error {
  override readonly name = 'ReceiveError'
  readonly kind: 'Stalled' | 'IncompleteBody'

  constructor(kind: ReceiveError['kind']) {
    super(kind === 'Stalled' ? 'The body stopped arriving.' : 'The body ended before its end.')
    this.kind = kind
  }
}

/** Destination of a request body. */
export interface BodySink {
  /** Takes ownership of the chunk. Returns false when the caller must await `ready` before the next chunk. */
  write(chunk: Buffer): boolean
  ready(): Promise<void>
}

/**
 * Pipes a request body to the sink. Resolves when exactly `length` bytes have arrived, or the whole body if that is
 * undefined. Throws ReceiveError when the client ends early or sends nothing for `idleMs`, and whatever the sink
 * throws.
 */
export function receive(
  request: IncomingMessage,
  length: number | undefined,
  sink: BodySink,
  idleMs: number,
): Promise<void> {
  return new Promise((resolve, reject) => {
    let received = 0
    // The end of a body may come while the sink still takes its last chunk, or refuses it.
    let sinkBusy = false
    let ended = false
    let settled = false
    const timer = setTimeout(() => settle(new ReceiveError('Stalled')), idleMs)
    const settle = (error?: unknown): void => {
      settled = true
      clearTimeout(timer)
      request.off('data', take).off('end', end).off('close', cut).off('error', cut)
      // The parser may still emit the error that ended the request.
      request.on('error', () => {})
      if (error === undefined) resolve()
      else {
        request.pause()
        reject(error)
      }
    }
    const take = (chunk: Buffer): void => {
      received += chunk.length
      timer.refresh()
      if (sink.write(chunk)) return
      request.pause()
      sinkBusy = true
      sink.ready().then(
        () => {
          sinkBusy = false
          // The client may have gone meanwhile: refresh() would start the timer again, and keep the process.
          if (settled) return
          timer.refresh()
          if (ended) end()
          else request.resume()
        },
        (error) => settle(error),
      )
    }
    const end = (): void => {
      ended = true
      if (sinkBusy) return
      settle(length === undefined || received === length ? undefined : new ReceiveError('IncompleteBody'))
    }
    const cut = (): void => {
      if (!ended) settle(new ReceiveError('IncompleteBody'))
    }

    // Also of a complete body: what the connection still held when it was closed is not emitted.
    if (request.destroyed) return cut()
    request.on('data', take).on('end', end).on('close', cut).on('error', cut)
  })
}

/** Tracks whether the client has been told to send its body, if it asked (RFC 9110, 10.1.1). */
export class BodyGate {
  readonly #response: ServerResponse
  #waiting: boolean

  /** @param waiting true when the client sent `Expect: 100-continue` */
  constructor(response: ServerResponse, waiting: boolean) {
    this.#response = response
    this.#waiting = waiting
  }

  /** True while the client waits for 100 Continue. */
  get waiting(): boolean {
    return this.#waiting
  }

  open(): void {
    if (!this.#waiting) return
    this.#waiting = false
    this.#response.writeContinue()
  }
}
