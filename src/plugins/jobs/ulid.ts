import { decodeTime, isValid, monotonicFactory } from 'ulid'

/**
 * Generates ids that sort as text in the order of their creation: 48 bits of time, 80 random bits. Within one
 * millisecond, and while the clock goes backwards, the random part counts up. https://github.com/ulid/spec
 * @param now ms since 1970
 */
export function ulids(now: () => number): () => string {
  const next = monotonicFactory()
  return () => next(now())
}

/** The time in an id, ms since 1970; NaN for an invalid id. */
export function timeOfUlid(id: string): number {
  if (!isValid(id)) return Number.NaN
  try {
    return decodeTime(id)
  } catch {
    // `isValid` accepts times of more than 48 bits.
    return Number.NaN
  }
}
