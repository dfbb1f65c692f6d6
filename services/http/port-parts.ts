import { freeBuffer } from '../../common/free-buffer.js'
import { FIRST_WINDOW_BYTES, PART_BYTES } from '../../common/port-messages.js'
import type { AnswerWindow } from '../../common/port-windows.js'
import type { BodySink } from './body-sink.js'
import { ReceiveError } from './errors.js'

/** The body of a request of a client in this process, which arrives in parts as they are granted. */
export class PortParts {
  readonly #length: number
  readonly #window: AnswerWindow
  readonly #grant: (bytes: number, memory?: ArrayBuffer) => void
  #waiting: { readonly part: Uint8Array<ArrayBuffer>; readonly since: number }[] = []
  /** Memory that goes back with the next grant. */
  #used: ArrayBuffer[] = []
  #wake: (() => void) | undefined
  #state: 'open' | 'complete' | 'cut' = 'open'
  #isClosed = false

  /**
   * @param length of the body, as its client states it
   * @param grant tells the client how many more bytes it may send, and gives it memory back
   */
  constructor(length: number, window: AnswerWindow, grant: (bytes: number, memory?: ArrayBuffer) => void) {
    this.#length = length
    this.#window = window
    this.#grant = grant
  }

  get isComplete(): boolean {
    return this.#state === 'complete'
  }

  get isCut(): boolean {
    return this.#state === 'cut'
  }

  /** Asks the client for the body. */
  ask(): void {
    this.#grant(FIRST_WINDOW_BYTES + Math.max(0, this.#window.begin(Math.max(this.#length, FIRST_WINDOW_BYTES))))
  }

  /** @param part true for the end of the body */
  arrived(part: Uint8Array<ArrayBuffer> | true): void {
    if (part === true) this.#state = 'complete'
    else if (this.#isClosed) free(part.buffer)
    else this.#waiting.push({ part, since: performance.now() })
    this.#wake?.()
  }

  /** The client has gone. */
  cut(): void {
    if (this.#state === 'open') this.#state = 'cut'
    this.#wake?.()
  }

  /** Passes the body to the sink, as `receive` does. */
  async receive(length: number | undefined, sink: BodySink, idleMs: number): Promise<void> {
    let received = 0
    for (let next = await this.#next(idleMs); next; next = await this.#next(idleMs)) {
      const { part, since } = next
      received += part.length
      if (length !== undefined && received > length) throw new ReceiveError('IncompleteBody')
      const bytes = Buffer.from(part.buffer, part.byteOffset, part.length)
      const hasRoom = sink.write(bytes, () => this.#give(part.buffer))
      if (!hasRoom) await sink.ready()
      const granted = this.#window.returned(bytes.length, performance.now() - since)
      if (this.#state === 'open' && granted > 0) this.#grant(granted, this.#used.pop())
    }
    if (length !== undefined && received !== length) throw new ReceiveError('IncompleteBody')
  }

  /** No more of the body is wanted. */
  close(): void {
    this.#isClosed = true
    this.#window.close()
    for (const { part } of this.#waiting.splice(0)) free(part.buffer)
    for (const memory of this.#used.splice(0)) free(memory)
  }

  async #next(idleMs: number) {
    if (this.#waiting.length === 0 && this.#state === 'open') await this.#more(idleMs)
    if (this.#state === 'cut') throw new ReceiveError('IncompleteBody')
    const next = this.#waiting.shift()
    if (!next && this.#state === 'open') throw new ReceiveError('Stalled')
    return next
  }

  /** Resolves once something has arrived, the client has gone, or after `idleMs`. */
  async #more(idleMs: number): Promise<void> {
    let timer: NodeJS.Timeout | undefined
    await new Promise<void>((resolve) => {
      this.#wake = resolve
      timer = setTimeout(resolve, idleMs)
    })
    this.#wake = undefined
    clearTimeout(timer)
  }

  /** Gives memory back, which costs less than to free it here and to allocate it there. */
  #give(memory: ArrayBuffer): void {
    if (this.#state === 'open' && !this.#isClosed && memory.byteLength === PART_BYTES) this.#used.push(memory)
    else free(memory)
  }
}

function free(memory: ArrayBuffer): void {
  freeBuffer(Buffer.from(memory))
}
