import { setTimeout as sleep } from 'node:timers/promises'

const DAY_MS = 86_400_000
/** Longer than a test takes that looks at the day more than once, ms. */
const MARGIN_MS = 180_000

/** Waits until midnight UTC is past when it is near: for tests of what becomes due at midnight, whose objects get the time of the machine. */
export async function farFromMidnight(): Promise<void> {
  const left = DAY_MS - (Date.now() % DAY_MS)
  if (left < MARGIN_MS) await sleep(left + 1000)
}
