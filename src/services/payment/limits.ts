import { MINUTE_MS } from '../../common/durations.js'

const GiB = 2 ** 30

/** Bounds of the storage payment API. */
export interface PaymentLimits {
  /** Largest JSON body, bytes. */
  readonly maxJsonBytes: number
  /** A JSON body must arrive within this time, ms. */
  readonly jsonMs: number
  /** A request whose body stops arriving for this long is aborted, ms. */
  readonly bodyIdleMs: number
  /** Largest file of an upload, bytes. */
  readonly maxFileBytes: number
  /** Most bytes of uploads that one wallet has not paid. */
  readonly maxUnpaidBytes: number
  /** Most bytes of all contents, as CARs, with what uploads in progress take. */
  readonly maxStoredBytes: number
  /** Most uploads that arrive at the same time. */
  readonly uploadsAtOnce: number
  /** A nonce can be used for this long, seconds. */
  readonly nonceSeconds: number
  /** Time that running requests get to finish when the service stops, ms. */
  readonly stopMs: number
}

export const paymentLimits: PaymentLimits = Object.freeze({
  maxJsonBytes: 64 * 1024,
  jsonMs: MINUTE_MS,
  bodyIdleMs: MINUTE_MS,
  maxFileBytes: 8 * GiB,
  maxUnpaidBytes: 4 * GiB,
  maxStoredBytes: 32 * GiB,
  uploadsAtOnce: 8,
  nonceSeconds: 300,
  stopMs: 10_000,
})
