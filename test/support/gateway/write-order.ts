import type { WriteOrder } from '../../../src/api/gateway.js'

/**
 * The clock of the gateway may be 20 ms before that of the system, and no write counts before the birth of its bucket.
 */
const AHEAD_MS = 1000

let last = 0

/** The place of a write behind all that were made before it in this process. */
export function anyOrder(): WriteOrder {
  last = Math.max(last + 1, (Date.now() + AHEAD_MS) * 1000)
  return { fence: last, ensure: () => {} }
}
