import type { IncomingHttpHeaders } from 'node:http'
import { freeBuffer } from '../../../common/free-buffer.js'
import { FIRST_WINDOW_BYTES, type FromServer, unpacked } from '../../../common/port-messages.js'
import type { AnswerWindow } from '../../../common/port-windows.js'
import { fieldValue } from '../../../src/gateway/transport/framing.js'
import { type BodyReceiver, lost, type RestResponse } from '../../../src/gateway/transport/response.js'
import type { SentResponse } from '../../../src/gateway/transport/wire.js'
import type { PortSending } from './port-sending.js'

/** How many more bytes of the body the gateway may send, and memory for them; or that the answer is not wanted. */
export type Told = readonly [granted: number, memory?: ArrayBuffer] | readonly []

/** One request, and its answer. */
export class PortExchange implements SentResponse {
  readonly answered: Promise<RestResponse>
  readonly reused = false
  readonly answeredEarly = false
  readonly unsentBytes = 0
  status = 0
  headers: IncomingHttpHeaders = {}
  readonly #method: string
  readonly #post: (...message: Told) => void
  readonly #over: () => void
  readonly #window: AnswerWindow
  /** The body of a request that follows it. */
  readonly #sending: PortSending | undefined
  #resolve!: (response: RestResponse) => void
  #reject!: (error: unknown) => void
  /** Parts of the body that wait for their receiver. */
  #parts: Buffer[] = []
  /** Bytes of the body that have not arrived; NaN where the answer does not say how many it has. */
  #left = Number.NaN
  #receiver: BodyReceiver | undefined
  #ahead = 0
  #lent = 0
  #lending = false
  /** The whole answer has arrived. */
  #complete = false
  #reported = false
  #failure: unknown

  /**
   * @param post tells the gateway
   * @param over called when nothing more is expected
   * @param window closed when the receiver has returned everything
   */
  constructor(
    method: string,
    post: (...message: Told) => void,
    over: () => void,
    window: AnswerWindow,
    sending?: PortSending,
  ) {
    this.#method = method
    this.#post = post
    this.#window = window
    this.#sending = sending
    this.#over = over
    this.answered = new Promise((resolve, reject) => {
      this.#resolve = resolve
      this.#reject = reject
    })
  }

  take(message: FromServer): void {
    const [, what, headers, body] = message
    if (what === null) {
      this.#sending?.granted(headers as number, body as ArrayBuffer | undefined)
      return
    }
    if (typeof what === 'number') {
      this.status = what
      this.headers = fieldsOf(headers as readonly (string | number)[])
      const length = this.headers['content-length']
      if (this.#method !== 'HEAD' && length !== undefined) this.#left = Number(length)
      if (body !== undefined) {
        this.#arrived(unpacked(body as string | Uint8Array))
        this.#ended()
      } else if (this.#left > FIRST_WINDOW_BYTES) this.#grant(this.#window.begin(this.#left))
      this.#resolve(this)
    } else if (typeof what === 'boolean') {
      if (what && this.status !== 0) this.#ended()
      else this.lost()
    } else this.#arrived(unpacked(what))
    this.#flow()
  }

  giveUp(error?: Error): void {
    if (this.#complete || this.#failure !== undefined) return
    this.#post()
    this.lost(error)
  }

  /** No answer can come any more. */
  lost(error: unknown = lost()): void {
    if (this.#complete || this.#failure !== undefined) return
    this.#failure = error
    this.#parts = []
    this.#window.close()
    this.#over()
    if (this.status === 0) this.#reject(error)
    else this.#receiver?.failed(error)
  }

  whole(): Buffer | undefined {
    if (!this.#complete || this.#receiver || this.#failure !== undefined || this.#parts.length > 1) return undefined
    this.#window.close()
    return this.#parts.pop() ?? Buffer.alloc(0)
  }

  read(receiver: BodyReceiver, ahead: number): void {
    if (this.#failure !== undefined) {
      receiver.failed(this.#failure)
      return
    }
    this.#receiver = receiver
    this.#ahead = Math.max(1, ahead)
    this.#flow()
  }

  drain(): void {
    this.destroy()
  }

  destroy(): void {
    this.giveUp()
    this.#parts = []
    this.#window.close()
    if (this.#failure !== undefined) return
    this.#failure = lost()
    if (!this.#reported) this.#receiver?.failed(this.#failure)
  }

  #arrived(part: Buffer): void {
    if (this.#failure !== undefined || part.length === 0) return
    this.#left -= part.length
    this.#parts.push(part)
  }

  /** A body of another length than was announced never looks complete. */
  #ended(): void {
    if (this.#left !== 0 && !Number.isNaN(this.#left)) this.lost()
    else {
      this.#complete = true
      this.#over()
    }
  }

  #flow(): void {
    const receiver = this.#receiver
    if (!receiver || this.#lending) return
    this.#lending = true
    try {
      while (this.#lent < this.#ahead && this.#failure === undefined) {
        const part = this.#parts.shift()
        if (!part) break
        this.#lend(receiver, part)
      }
    } finally {
      this.#lending = false
    }
    if (!this.#complete || this.#parts.length > 0 || this.#failure !== undefined) return
    // The client may read long after everything has arrived.
    if (this.#lent === 0) this.#window.close()
    if (this.#reported) return
    this.#reported = true
    receiver.end()
  }

  #grant(bytes: number): void {
    if (bytes > 0) this.#post(bytes)
  }

  /** More may come, and is wanted. */
  get #isOpen(): boolean {
    return !this.#complete && this.#failure === undefined
  }

  /** Gives the memory of a part back, which costs less than to free it here and to allocate it there. */
  #return(part: Buffer, granted: number): void {
    const { buffer } = part
    if (granted > 0 && this.#left > 0 && buffer instanceof ArrayBuffer) this.#post(granted, buffer)
    else {
      freeBuffer(part)
      this.#grant(granted)
    }
  }

  #lend(receiver: BodyReceiver, part: Buffer): void {
    const { length } = part
    const lent = performance.now()
    this.#lent++
    try {
      receiver.data(part, () => {
        this.#lent--
        this.#return(part, this.#isOpen ? this.#window.returned(length, performance.now() - lent) : 0)
        this.#flow()
      })
    } catch (error) {
      this.#post()
      this.lost(error)
    }
  }
}

/** The headers as node:http gives them: names in lower case, values as text. */
function fieldsOf(list: readonly (string | number)[]): IncomingHttpHeaders {
  const fields: IncomingHttpHeaders = {}
  for (let at = 0; at < list.length; at += 2) fields[String(list[at]).toLowerCase()] = fieldValue(String(list[at + 1]))
  return fields
}
