/** Pauses between attempts that fail one after the other, ms. */
export interface Backoff {
  /** After the first failure; doubled with each further one. */
  readonly firstMs: number
  readonly longestMs: number
}

/**
 * The pause after so many failures in a row, ms: the home of every exponential backoff.
 * @param failures from 1
 */
export function pauseAfter(failures: number, { firstMs, longestMs }: Backoff): number {
  // 2 ** 1024 is infinite, and 0 ms times it no number.
  return Math.min(firstMs * 2 ** Math.min(failures - 1, 64), longestMs)
}

/**
 * The same, shortened at random by up to half, so that many clients of one server do not come back at the same moment
 * (https://aws.amazon.com/builders-library/timeouts-retries-and-backoff-with-jitter/).
 */
export function jitteredPause(failures: number, backoff: Backoff): number {
  return pauseAfter(failures, backoff) * (0.5 + Math.random() / 2)
}
