import type { IncomingHttpHeaders, IncomingMessage } from 'node:http'
import { type BodyReceiver, DRAIN_BYTES, lost, type RestResponse } from './response.js'

/** An answer received through node:http: over TLS, or to a request with a body. */
export class NodeResponse implements RestResponse {
  readonly #message: IncomingMessage

  constructor(message: IncomingMessage) {
    this.#message = message
    // A message without a reader may still fail; an unhandled error would end the process.
    message.on('error', () => {})
  }

  get status(): number {
    return this.#message.statusCode ?? 0
  }

  get headers(): IncomingHttpHeaders {
    return this.#message.headers
  }

  whole(): undefined {
    return undefined
  }

  read(receiver: BodyReceiver, ahead: number): void {
    const message = this.#message
    const most = Math.max(1, ahead)
    let lent = 0
    let over = false
    const settle = (tell: () => void) => {
      if (over) return
      over = true
      tell()
    }
    if (message.destroyed) {
      receiver.failed(lost())
      return
    }
    message.on('data', (chunk: Buffer) => {
      if (over) return
      if (++lent >= most) message.pause()
      receiver.data(chunk, () => {
        if (--lent < most && !over) message.resume()
      })
    })
    message.once('end', () => settle(() => receiver.end()))
    message.once('error', (error) => settle(() => receiver.failed(error)))
    message.once('close', () => settle(() => receiver.failed(lost())))
  }

  drain(): void {
    this.#message.removeAllListeners('data')
    if (Number(this.headers['content-length'] ?? Number.POSITIVE_INFINITY) > DRAIN_BYTES) this.destroy()
    else this.#message.resume()
  }

  destroy(): void {
    this.#message.destroy()
  }
}
