import { setTimeout as sleep } from 'node:timers/promises'
import { DAY_MS } from '../../common/time.js'

/** Default time limit of `until`, ms. */
const PATIENCE_MS = 120_000
/** Shortest and longest pause between two looks of `until`, ms: a look costs CPU time, and a long wait takes many. */
const PAUSES_MS = { least: 10, most: 200 }
/** A pause is at most this part of the wait so far. */
const PART_OF_WAIT = 8

/** Longer than a test takes that looks at the day more than once, ms. */
const MARGIN_MS = 180_000

/**
 * Polls `look` until its result is neither undefined nor false, and resolves to this result.
 * Rejects with an error that names `what` after `patienceMs`: a limit for broken code, never a part of what a test
 * proves.
 */
export async function until<T>(
  what: string,
  look: () => T | undefined | false | Promise<T | undefined | false>,
  patienceMs = PATIENCE_MS,
): Promise<T> {
  const begun = Date.now()
  for (;;) {
    const found = await look()
    if (found !== undefined && found !== false) return found as T
    const waited = Date.now() - begun
    if (waited > patienceMs) throw new Error(`waited in vain until ${what}`)
    await sleep(Math.min(Math.max(waited / PART_OF_WAIT, PAUSES_MS.least), PAUSES_MS.most))
  }
}

/**
 * Stops `performance.now()` of this process until the test ends: for waits of the product that begin and are looked at
 * within a test, and would be over where the test is slow. Timers go on.
 */
export function stopMonotonicClock(t: { teardown(run: () => unknown): void }): void {
  const { now } = performance
  const stopped = performance.now()
  performance.now = () => stopped
  t.teardown(() => (performance.now = now))
}

/**
 * Waits until midnight UTC is past when it is near: for tests of what becomes due at midnight, whose objects get the
 * time of the machine.
 */
export async function farFromMidnight(): Promise<void> {
  const left = DAY_MS - (Date.now() % DAY_MS)
  if (left < MARGIN_MS) await sleep(left + 1000)
}
