import { FIRST_WINDOW_BYTES } from './port-messages.js'

/** Most bytes of one body that are under way. */
const MAX_WINDOW_BYTES = 2 * 1024 * 1024

/** Most bytes under way for all bodies in one direction, besides the first window of each. */
const MAX_GRANTED_BYTES = 32 * 1024 * 1024

/** A part of a body that its receiver keeps for longer than this, ms, is that of a slow reader. */
const QUICK_MS = 250

/**
 * Bounds the bytes of all answers that are under way between the gateway of this process and the clients: those who
 * read slowly cost their first window each, and share the rest with those who read fast.
 */
export class Windows {
  #granted = 0

  /** Bytes that answers may have under way besides their first windows. */
  get granted(): number {
    return this.#granted
  }

  open(): AnswerWindow {
    return new AnswerWindow((bytes, most) => {
      const given = Math.max(Math.min(bytes, most - this.#granted), bytes < 0 ? bytes : 0)
      this.#granted += given
      return given
    })
  }
}

/** Bytes of one answer that may be under way. */
class AnswerWindow {
  #size = FIRST_WINDOW_BYTES
  readonly #take: (bytes: number, most: number) => number

  /** @param take returns how many of the bytes it gives, or takes them back */
  constructor(take: (bytes: number, most: number) => number) {
    this.#take = take
  }

  /**
   * Returns how many bytes to grant at once for an answer of this length. While few are under way, a short answer comes
   * without a pause.
   */
  begin(length: number): number {
    return this.#grow(Math.min(length, MAX_WINDOW_BYTES) - this.#size, MAX_GRANTED_BYTES / 2)
  }

  /** Returns how many bytes to grant now that the receiver has returned a part after `ms`. */
  returned(length: number, ms: number): number {
    if (ms <= QUICK_MS)
      return length + this.#grow(Math.min(this.#size, MAX_WINDOW_BYTES - this.#size), MAX_GRANTED_BYTES)
    // A window never becomes smaller than the first one, in which every answer goes on.
    if (this.#size - length < FIRST_WINDOW_BYTES) return length
    this.#grow(-length, 0)
    return 0
  }

  close(): void {
    this.#grow(FIRST_WINDOW_BYTES - this.#size, 0)
  }

  #grow(bytes: number, most: number): number {
    if (bytes === 0) return 0
    const given = this.#take(bytes, most)
    this.#size += given
    return given
  }
}

export type { AnswerWindow }
