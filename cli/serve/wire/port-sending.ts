import { freeBuffer } from '../../../common/free-buffer.js'
import { PART_BYTES } from '../../../common/port-messages.js'
import type { SentParts, SentResponse } from '../../../src/gateway/transport/wire.js'

/** Bytes of memory for a part while the gateway takes few. */
const SMALL_PART_BYTES = 64 * 1024

/** Most parts whose memory waits to be used again. */
const MAX_SPARE = 8

/** The body of a request that follows it over a port, as far as the gateway grants. */
export class PortSending {
  room = 0
  isComplete = false
  whenRoom: (() => void) | undefined
  #post: ((part: Uint8Array<ArrayBuffer> | true) => void) | undefined
  /** Memory that the gateway has given back. */
  #spare: ArrayBuffer[] = []

  /** @param post sends a part, or the end */
  open(post: (part: Uint8Array<ArrayBuffer> | true) => void): void {
    this.#post = post
  }

  of(response: SentResponse): SentParts {
    return Object.assign(this, { response })
  }

  granted(bytes: number, memory?: ArrayBuffer): void {
    if (memory) this.#keep(memory)
    this.room += bytes
    if (this.room > 0) this.whenRoom?.()
  }

  memory(): ArrayBuffer {
    const bytes = this.room < PART_BYTES ? SMALL_PART_BYTES : PART_BYTES
    return this.#spare.pop() ?? Buffer.allocUnsafeSlow(bytes).buffer
  }

  send(part: Uint8Array<ArrayBuffer>): void {
    this.room -= part.length
    this.#post?.(part)
  }

  end(): void {
    if (this.#post) this.isComplete = true
    this.#post?.(true)
  }

  /** Nothing more is sent. */
  close(): void {
    this.#post = undefined
    for (const memory of this.#spare) freeBuffer(Buffer.from(memory))
    this.#spare = []
  }

  #keep(memory: ArrayBuffer): void {
    if (this.#post && !this.isComplete && this.#spare.length < MAX_SPARE) this.#spare.push(memory)
    else freeBuffer(Buffer.from(memory))
  }
}
