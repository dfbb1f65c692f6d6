import { LRUCache } from 'lru-cache'
import pLimit from 'p-limit'
import { pauseAfter } from '../common/backoff.js'
import { upTo } from '../common/lru.js'
import { MINUTE_MS } from '../common/time.js'

/** Delay after the failures that count. */
const BACKOFF = { firstMs: 1000, longestMs: MINUTE_MS }

/** Failures are forgotten when no other follows for this long, ms. Longer than the longest delay. */
export const FORGET_MS = 15 * MINUTE_MS

/** Most keys remembered; the one with the oldest last failure is evicted first. */
const MAX_REMEMBERED = 20_000

interface Failures {
  count: number
  /** Time of the last failure, and time until which the key must wait: ms of the monotonic clock. */
  last: number
  until: number
}

/** ms, after so many failures, of which some are free. */
export function waitAfter(count: number, free: number): number {
  return count < free ? 0 : pauseAfter(count - free + 1, BACKOFF)
}

/** Counts failures by key, and makes a key wait longer with each. Memory is bounded: keep keys short. */
export class FailureCounts {
  readonly #now: () => number
  /** In the order of the last failure: looking at one does not touch it. */
  readonly #failures = new LRUCache<string, Failures>(upTo(MAX_REMEMBERED))

  /** @param now ms of a monotonic clock */
  constructor(now: () => number) {
    this.#now = now
  }

  /** Rest of the wait, ms; 0 without one. */
  waitOf(key: string): number {
    return Math.max(0, (this.#known(key)?.until ?? 0) - this.#now())
  }

  /**
   * Counts a failure.
   * @param free failures before a wait applies
   * @returns their number by now
   */
  count(key: string, free: number): number {
    const now = this.#now()
    const count = (this.#known(key)?.count ?? 0) + 1
    this.#failures.set(key, { count, last: now, until: now + waitAfter(count, free) })
    return count
  }

  /** Takes one failure back that turned out to be none. Its wait, if it began one, ends. */
  takeBack(key: string): void {
    const failures = this.#failures.peek(key)
    if (failures === undefined) return
    failures.count--
    failures.until = 0
    if (failures.count <= 0) this.#failures.delete(key)
  }

  forget(key: string): void {
    this.#failures.delete(key)
  }

  #known(key: string): Failures | undefined {
    const failures = this.#failures.peek(key)
    if (failures === undefined || this.#now() - failures.last <= FORGET_MS) return failures
    this.#failures.delete(key)
    return undefined
  }
}

/**
 * Runs `job` as soon as a slot is free, first in, first out. Rejects with the signal's reason when that comes first:
 * the job then never starts.
 */
export type AbortableLimit = <T>(job: () => Promise<T>, signal: AbortSignal) => Promise<T>

/**
 * A semaphore with `concurrency` slots: p-limit, plus a way out for waiting jobs. p-limit itself keeps an aborted job
 * in its queue until a slot is free, so that stopping the gateway would wait for a deal that may take hours. A job that
 * has started keeps its slot until it settles.
 */
export function abortableLimit(concurrency: number): AbortableLimit {
  const limit = pLimit(concurrency)
  return (job, signal) =>
    new Promise((resolve, reject) => {
      if (signal.aborted) return reject(signal.reason)
      const abort = (): void => reject(signal.reason)
      signal.addEventListener('abort', abort, { once: true })
      limit(() => {
        signal.removeEventListener('abort', abort)
        signal.throwIfAborted()
        return job()
      }).then(resolve, reject)
    })
}
