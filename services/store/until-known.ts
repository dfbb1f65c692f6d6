import { setTimeout as sleep } from 'node:timers/promises'
import { MINUTE_MS } from '../../common/time.js'
import { DatabaseUnavailableError, LeaseLostError } from './database.js'

/** Pause before a transaction that may have taken place is repeated, ms. */
const AGAIN_MS = 200

interface Patience {
  readonly signal?: AbortSignal
  /** Longest time in which it is repeated, ms; default a minute. */
  readonly forMs?: number
}

/**
 * Repeats a transaction while the database is not available, because the one before may have taken place: `work` finds
 * out. The home of commits whose outcome is unknown. Rejects with DatabaseUnavailableError when the signal aborts
 * before it is known, or after `forMs`: others wait for the place of this work, and a client that asks for it again
 * finds it.
 */
export async function untilKnown<T>(work: () => Promise<T>, { signal, forMs = MINUTE_MS }: Patience = {}): Promise<T> {
  const latest = performance.now() + forMs
  for (let attempt = 1; ; attempt++) {
    try {
      return await work()
    } catch (error) {
      if (!(error instanceof DatabaseUnavailableError) || error instanceof LeaseLostError) throw error
      await sleep(AGAIN_MS, undefined, { signal }).catch(() => {})
      // Even after an attempt that waited in vain for longer, one more finds out.
      if (signal?.aborted || (attempt > 1 && performance.now() >= latest)) throw error
    }
  }
}
