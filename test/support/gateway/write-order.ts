import type { WriteOrder } from '../../../src/gateway/gateway.js'

let last = 0

/** The place of a write behind all that were made before it in this process. */
export function anyOrder(): WriteOrder {
  last = Math.max(last + 1, Date.now() * 1000)
  return { fence: last, ensure: () => {} }
}
