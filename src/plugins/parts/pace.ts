import { setTimeout as sleep } from 'node:timers/promises'
import { TokenBuckets } from '../../../common/client-rate.js'

/** The only client of the buckets of a pace. */
const ALL = ''

/**
 * Bounds how much background work a process does per second, of all tasks that share the pace: one bucket of tokens,
 * which outlives the tasks.
 */
export class Pace {
  readonly #buckets: TokenBuckets | undefined

  /**
   * @param perSecond units of work; 0 for no bound
   * @param burst units that may be done at once after a pause; default those of a second
   * @param clock monotonic, ms
   */
  constructor(perSecond: number, burst = perSecond, clock?: () => number) {
    this.#buckets = perSecond > 0 ? new TokenBuckets({ perSecond, burst }, clock) : undefined
  }

  /** Waits until one more unit may be done, and counts it. Rejects with the reason of the signal. */
  async next(signal: AbortSignal): Promise<void> {
    const wait = this.#buckets?.wait(ALL, 1) ?? 0
    // Taken at once, so that those who wait do not begin together.
    this.#buckets?.take(ALL, 1)
    if (wait > 0) await sleep(wait * 1000, undefined, { signal })
  }

  /** Milliseconds until what was counted is within the bound: for work whose units are known when it is done. */
  owedMs(): number {
    return (this.#buckets?.wait(ALL, 0) ?? 0) * 1000
  }

  /** Waits until `owedMs` is 0. Rejects with the reason of the signal. */
  async settled(signal: AbortSignal): Promise<void> {
    // Others may count work meanwhile.
    for (let ms = this.owedMs(); ms > 0; ms = this.owedMs()) await sleep(Math.ceil(ms), undefined, { signal })
  }

  /** Counts units that were done. */
  count(units: number): void {
    this.#buckets?.take(ALL, units)
  }
}
