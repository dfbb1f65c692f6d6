import type { ClientRequest, IncomingMessage } from 'node:http'
import { timedOut } from './errors.js'
import { type Answer, readAnswer } from './rest-client.js'
import { NodeResponse } from './transport/node-response.js'
import { lost } from './transport/response.js'

/** How much may wait in our own buffers before the writer is asked to wait, bytes. */
const MAX_BUFFERED_BYTES = 512 * 1024

/** One PUT on the wire: bytes out under back-pressure, and the one answer, whenever it comes. */
export class PutRequest {
  /** The final answer; rejects when the connection fails first. */
  readonly answer: Promise<Answer>
  readonly #request: ClientRequest
  readonly #idleMs: number
  #answered = false
  #failure: unknown
  // One writer at a time waits here. Hanging it on `answer` instead would pile up a reaction per drain for as long as the upload lasts.
  #waiting: { resolve(): void; reject(error: unknown): void } | undefined

  constructor(request: ClientRequest, idleMs: number) {
    this.#request = request
    this.#idleMs = idleMs
    this.answer = new Promise((resolve, reject) => {
      let head: IncomingMessage | undefined
      const fail = (error: unknown) => {
        // A gateway that refuses early closes early: what it said counts, not that our writing failed.
        if (head) return
        this.#failure ??= error
        reject(error)
        this.#waiting?.reject(error)
      }
      request.once('response', (response: IncomingMessage) => {
        head = response
        readAnswer(new NodeResponse(response), idleMs).then((answer) => {
          this.#answered = true
          resolve(answer)
          this.#waiting?.reject(new AnsweredEarly())
        })
      })
      request.on('error', fail)
      request.once('close', () => fail(lost()))
    })
    // Writers may never come to look at it.
    this.answer.catch(() => {})
  }

  /** True when the connection had carried another request before: the gateway may have closed it meanwhile. */
  get reused(): boolean {
    return this.#request.reusedSocket
  }

  /**
   * After `Expect: 100-continue`: resolves undefined when the gateway wants the body or says nothing for `patienceMs` (RFC 9110 section 10.1.1
   * asks not to wait for ever), else with its answer. Rejects when the connection fails.
   */
  goAhead(patienceMs: number): Promise<Answer | undefined> {
    return new Promise((resolve, reject) => {
      let timer: NodeJS.Timeout | undefined
      const settle = (answer?: Answer) => {
        clearTimeout(timer)
        resolve(answer)
      }
      this.#request.once('continue', () => settle())
      // The gateway's time counts from when it can have read the head.
      this.#request.once('socket', (socket) => {
        const begin = () => {
          timer = setTimeout(settle, patienceMs)
        }
        if (socket.connecting) socket.once('connect', begin)
        else begin()
      })
      this.answer.then(settle, (error: unknown) => {
        clearTimeout(timer)
        reject(error)
      })
    })
  }

  /** A returned promise is back-pressure; it rejects when the connection fails, the gateway answers first, or takes nothing for idleMs. */
  write(chunk: Buffer): void | Promise<void> {
    if (this.#answered) return Promise.reject(new AnsweredEarly())
    if (this.#failure !== undefined) return Promise.reject(this.#failure)
    const free = this.#request.write(chunk)
    if (free || this.#request.writableLength < MAX_BUFFERED_BYTES) return undefined
    return this.#drained()
  }

  /** The last bytes, and the end of the request. */
  end(chunk?: Buffer): void {
    // end(chunk) as the first write would have Node send a Content-Disposition beyond ASCII in other bytes than it was given
    // (lib/_http_outgoing.js, processHeader).
    if (chunk?.length) this.#request.write(chunk)
    this.#request.end()
  }

  /** `answer`, waited for no longer than `patienceMs`. */
  async answered(patienceMs: number): Promise<Answer> {
    const timer = setTimeout(() => this.#request.destroy(timedOut('the answer to an upload')), patienceMs)
    try {
      return await this.answer
    } finally {
      clearTimeout(timer)
    }
  }

  /** Ends the connection, short of its Content-Length if the body is not through. */
  destroy(): void {
    this.#request.destroy()
  }

  async #drained(): Promise<void> {
    const timer = setTimeout(() => this.#request.destroy(timedOut('an upload')), this.#idleMs)
    const drained = () => this.#waiting?.resolve()
    this.#request.once('drain', drained)
    try {
      await new Promise<void>((resolve, reject) => {
        this.#waiting = { resolve, reject }
      })
    } finally {
      this.#waiting = undefined
      this.#request.off('drain', drained)
      clearTimeout(timer)
    }
  }
}

/** The gateway answered before it had the whole body: `PutRequest.answer` says what. */
export class AnsweredEarly extends Error {}
