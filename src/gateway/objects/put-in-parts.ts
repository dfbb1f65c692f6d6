import { freeBuffer } from '../../../common/free-buffer.js'
import { readAnswer, type SmallAnswer } from '../calls/rest-call.js'
import { timedOut } from '../errors.js'
import type { SentParts } from '../transport/wire.js'
import { AnsweredEarly, answeredInTime, type StreamedPut } from './put-request.js'

/** Bytes that fill no part are sent after this time, ms. */
const MAX_HELD_MS = 20

/**
 * A PUT whose body is sent in parts of memory that moves to the gateway and comes back. Chunks are copied into it: that
 * costs less than one message for each of them, and their memory is free at once.
 */
export class PutInParts implements StreamedPut {
  readonly answer: Promise<SmallAnswer>
  readonly reused = false
  /** The windows of the port bound what the gateway has not read. */
  readonly unsentBytes = 0
  readonly #sent: SentParts
  readonly #idleMs: number
  #answered = false
  #failure: unknown
  #waiting: { resolve(): void; reject(error: unknown): void } | undefined
  #part: Uint8Array<ArrayBuffer> | undefined
  #used = 0
  #timer: NodeJS.Timeout | undefined

  constructor(sent: SentParts, idleMs: number) {
    this.#sent = sent
    this.#idleMs = idleMs
    sent.whenRoom = () => this.#waiting?.resolve()
    this.answer = this.#read()
    this.answer.then(
      () => {
        this.#answered = true
        this.#stop(new AnsweredEarly())
      },
      (error: unknown) => {
        this.#failure = error
        this.#stop(error)
      },
    )
  }

  async goAhead(maxWaitMs: number): Promise<SmallAnswer | undefined> {
    if (this.#answered) return this.answer
    if (this.#failure !== undefined) throw this.#failure
    if (this.#sent.room > 0) return undefined
    try {
      await this.#hasRoom(maxWaitMs, () => this.#waiting?.resolve())
      return undefined
    } catch (error) {
      if (error instanceof AnsweredEarly) return this.answer
      throw error
    }
  }

  write(chunk: Buffer, release?: () => void): void | Promise<void> {
    if (this.#answered) return Promise.reject(new AnsweredEarly())
    if (this.#failure !== undefined) return Promise.reject(this.#failure)
    this.#copy(chunk)
    release?.()
    if (this.#used > 0) this.#timer ??= setTimeout(() => this.#send(), MAX_HELD_MS)
    if (this.#sent.room > 0) return undefined
    return this.#hasRoom(this.#idleMs, () => this.#sent.response.giveUp(timedOut('an upload')))
  }

  end(chunk?: Buffer): void {
    if (chunk) this.#copy(chunk)
    this.#send()
    this.#sent.end()
  }

  answered(maxWaitMs: number, keepOpen = false): Promise<SmallAnswer> {
    const cut = (error: Error) => this.#sent.response.giveUp(error)
    return answeredInTime(this.answer, maxWaitMs, keepOpen ? undefined : cut)
  }

  destroy(): void {
    this.#sent.response.giveUp()
  }

  async #read(): Promise<SmallAnswer> {
    const response = await this.#sent.response.answered
    const early = !this.#sent.isComplete
    const answer = await readAnswer(response, this.#idleMs)
    return early ? { ...answer, early } : answer
  }

  #copy(chunk: Buffer): void {
    for (let at = 0; at < chunk.length; ) {
      this.#part ??= new Uint8Array(this.#sent.memory())
      const taken = Math.min(chunk.length - at, this.#part.length - this.#used)
      this.#part.set(chunk.subarray(at, at + taken), this.#used)
      at += taken
      this.#used += taken
      if (this.#used === this.#part.length) this.#send()
    }
  }

  #send(): void {
    clearTimeout(this.#timer)
    this.#timer = undefined
    const part = this.#part
    if (!part || this.#used === 0) return
    this.#sent.send(part.subarray(0, this.#used))
    this.#part = undefined
    this.#used = 0
  }

  /** Nothing more is sent. */
  #stop(error: unknown): void {
    clearTimeout(this.#timer)
    this.#timer = undefined
    if (this.#part) freeBuffer(Buffer.from(this.#part.buffer))
    this.#part = undefined
    this.#used = 0
    this.#waiting?.reject(error)
  }

  /** @param late called after `maxWaitMs`, unless there is room, or the request has ended */
  async #hasRoom(maxWaitMs: number, late: () => void): Promise<void> {
    const timer = setTimeout(late, maxWaitMs)
    try {
      await new Promise<void>((resolve, reject) => {
        this.#waiting = { resolve, reject }
      })
    } finally {
      this.#waiting = undefined
      clearTimeout(timer)
    }
  }
}
