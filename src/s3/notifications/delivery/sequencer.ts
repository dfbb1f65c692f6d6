/** Number of hexadecimal digits for every number below 2^64, so that texts sort as the numbers do. */
const DIGITS = 16

/**
 * Numbers events. Each number sorts after the previous one as text, even if the clock is set back. Numbers are
 * microseconds since 1970 unless events come faster. "You can use sequencer to determine the order of events for a
 * given object key" (notification-content-structure.html).
 */
export class Sequencer {
  #last = 0

  constructor(readonly now: () => number = Date.now) {}

  next(): string {
    this.#last = Math.max(this.now() * 1000, this.#last + 1)
    return this.#last.toString(16).toUpperCase().padStart(DIGITS, '0')
  }

  /** Continues after this number. */
  follow(sequencer: string): void {
    const number = Number.parseInt(sequencer, 16)
    if (Number.isSafeInteger(number)) this.#last = Math.max(this.#last, number)
  }
}
