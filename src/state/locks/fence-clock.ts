import type { HeldLock } from '../state.js'

/**
 * Issues fences for writes: microseconds since 1970, each higher than the last, also when the system clock is set back.
 */
export class FenceClock {
  #last = 0

  next(): number {
    this.#last = Math.max(this.#last + 1, Date.now() * 1000)
    return this.#last
  }
}

/** A lock that no other process can take. Lasts until it is released. */
export class LocalLock implements HeldLock {
  readonly #clock: FenceClock
  #fence: number | undefined

  constructor(clock: FenceClock) {
    this.#clock = clock
  }

  get fence(): number {
    this.#fence ??= this.#clock.next()
    return this.#fence
  }

  ensure(): void {}

  leave(): void {}

  /**
   * Does not change the clock: a high fence on one key, whether by mistake or by intent of another client, must not
   * raise the fences of all other keys. An earlier write of this key with an unknown outcome has at most `beyond + 1`,
   * and the gateway accepts only one write with that fence.
   */
  async raise(beyond: number): Promise<void> {
    this.#fence = Math.max(this.#clock.next(), beyond + 1)
  }
}
