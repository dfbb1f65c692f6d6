import type { ClientRateBounds } from '../../common/http/client-rate.js'
import { MINUTE_MS } from '../../common/time.js'
import type { Pace } from '../http/body.js'

const GiB = 2 ** 30

export interface PaymentLimits {
  /** Largest JSON body, bytes. */
  readonly maxJsonBytes: number
  /** A JSON body must arrive within this time, ms. */
  readonly jsonMs: number
  /** A request whose body stops arriving for this long is aborted, ms. */
  readonly bodyIdleMs: number
  /** Largest file of an upload, bytes. */
  readonly maxFileBytes: number
  /** Most bytes, and most uploads, that one wallet has not paid. */
  readonly maxUnpaidBytes: number
  readonly maxUnpaidUploads: number
  /** Most bytes of the uploads of one wallet that are on their way to storage providers, paid or not. */
  readonly maxOpenBytes: number
  /** Most bytes, and most uploads, that all wallets together have not paid which have no coins and never paid. */
  readonly maxStrangeBytes: number
  readonly maxStrangeUploads: number
  /** Bytes that a wallet may upload for nothing in a calendar month; 0: none. */
  readonly freeBytesPerMonth: number
  /** Most uploads of them: an empty one would cost nothing, however many there are. */
  readonly freeUploadsPerMonth: number
  /** Most bytes of all contents, as CARs, with what uploads in progress take. */
  readonly maxStoredBytes: number
  /** Most entries and bytes of an archive that names each path of a directory; a longer one breaks off. */
  readonly maxArchiveEntries: number
  readonly maxArchiveBytes: number
  /** Most uploads that arrive at the same time: in all, of one wallet that signed in, and from one other machine. */
  readonly concurrentUploads: number
  readonly uploadsPerWallet: number
  readonly uploadsPerAddress: number
  readonly uploadPace: Pace
  /** Most CARs that are sent to one other machine at the same time: each block of them is hashed. */
  readonly carsPerAddress: number
  /** Sign-ins from other machines, by address. */
  readonly signIns: ClientRateBounds
  /** Most wallets that sign in for the first time within a day. */
  readonly maxNewWallets: number
  /** Most sign-ins within the time in which a nonce can be used. */
  readonly maxUsedNonces: number
  /** A nonce can be used for this long, seconds. */
  readonly nonceSeconds: number
  /** Time that running requests get to finish when the service stops, ms. */
  readonly stopMs: number
  /** Most open connections; one address, other than those of this machine, gets three quarters. */
  readonly maxConnections: number
}

export const paymentLimits: PaymentLimits = Object.freeze({
  maxJsonBytes: 64 * 1024,
  jsonMs: MINUTE_MS,
  bodyIdleMs: MINUTE_MS,
  maxFileBytes: 8 * GiB,
  maxUnpaidBytes: 4 * GiB,
  maxUnpaidUploads: 10_000,
  maxOpenBytes: 8 * GiB,
  maxStrangeBytes: 8 * GiB,
  maxStrangeUploads: 50_000,
  freeBytesPerMonth: 0,
  freeUploadsPerMonth: 10_000,
  maxStoredBytes: 32 * GiB,
  maxArchiveEntries: 2_000_000,
  maxArchiveBytes: 64 * GiB,
  concurrentUploads: 16,
  uploadsPerWallet: 4,
  uploadsPerAddress: 8,
  carsPerAddress: 16,
  uploadPace: { graceMs: MINUTE_MS, bytesPerSecond: 16 * 1024 },
  signIns: { burst: 60, perSecond: 1, concurrency: { total: 64, perClient: 16 } },
  maxNewWallets: 100_000,
  maxUsedNonces: 50_000,
  nonceSeconds: 300,
  stopMs: 10_000,
  maxConnections: 4096,
})
