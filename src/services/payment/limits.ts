import { MINUTE_MS } from '../../common/durations.js'

/** Bounds of the storage payment API. */
export interface PaymentLimits {
  /** Largest JSON body, bytes. */
  readonly maxJsonBytes: number
  /** A JSON body must arrive within this time, ms. */
  readonly jsonMs: number
  /** A request whose body stops arriving for this long is aborted, ms. */
  readonly bodyIdleMs: number
  /** A nonce can be used for this long, seconds. */
  readonly nonceSeconds: number
  /** Time that running requests get to finish when the service stops, ms. */
  readonly stopMs: number
}

export const paymentLimits: PaymentLimits = Object.freeze({
  maxJsonBytes: 64 * 1024,
  jsonMs: MINUTE_MS,
  bodyIdleMs: MINUTE_MS,
  nonceSeconds: 300,
  stopMs: 10_000,
})
