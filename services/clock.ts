const MILLISECOND = 1_000_000n
const SECOND = 1_000_000_000n

/** Largest deviation of the running clock from the system clock before it is set to that, ns. */
const MAX_DEVIATION = 20n * MILLISECOND

/**
 * Wall-clock time in nanoseconds since 1970. Each reading is later than the previous one, even when the system clock is
 * set back.
 */
export class Clock {
  #offset = 0n
  #last = 0n

  now(): bigint {
    const running = process.hrtime.bigint()
    const wall = BigInt(Date.now()) * MILLISECOND
    let now = this.#offset + running
    if (now - wall > MAX_DEVIATION || wall - now > MAX_DEVIATION) {
      this.#offset = wall - running
      now = wall
    }
    if (now <= this.#last) now = this.#last + 1n
    this.#last = now
    return now
  }
}

/** RFC 3339 in UTC with nine digits of fraction, so that texts sort in the order of time. */
export function rfc3339(nanoseconds: bigint): string {
  const seconds = new Date(Number(nanoseconds / MILLISECOND)).toISOString().slice(0, 19)
  return `${seconds}.${String(nanoseconds % SECOND).padStart(9, '0')}Z`
}

/** The inverse of `rfc3339`. */
export function nanosecondsOf(text: string): bigint {
  return BigInt(Date.parse(`${text.slice(0, 19)}Z`)) * MILLISECOND + BigInt(text.slice(20, 29))
}

/** Converts an `rfc3339` text to whole seconds since 1970, the resolution of HTTP dates. */
export function wholeSeconds(text: string): number {
  return Math.floor(Date.parse(text) / 1000)
}
