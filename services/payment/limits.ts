import type { ClientRateBounds } from '../../common/client-rate.js'
import { MINUTE_MS } from '../../common/time.js'
import type { Pace } from './uploads/pace.js'

const GiB = 2 ** 30

export const paymentLimits = {
  /** Largest JSON body, bytes. */
  maxJsonBytes: 64 * 1024,
  /** A JSON body must arrive within this time, ms. */
  jsonMs: MINUTE_MS,
  /** A request whose body stops arriving for this long is aborted, ms. */
  bodyIdleMs: MINUTE_MS,
  /** Largest file of an upload, bytes. */
  maxFileBytes: 8 * GiB,
  /** Most bytes, and most uploads, that one wallet has not paid. */
  maxUnpaidBytes: 4 * GiB,
  maxUnpaidUploads: 10_000,
  /** Most bytes of the uploads of one wallet that are on their way to storage providers, paid or not. */
  maxOpenBytes: 8 * GiB,
  /** Most bytes, and most uploads, that all wallets together have not paid which have no coins and never paid. */
  maxStrangeBytes: 8 * GiB,
  maxStrangeUploads: 50_000,
  /** Bytes that a wallet may upload for nothing in a calendar month; 0: none. */
  freeBytesPerMonth: 0,
  /** Most uploads of them: an empty one would cost nothing, however many there are. */
  freeUploadsPerMonth: 10_000,
  /** Most bytes of all contents, as CARs, with what uploads in progress take. */
  maxStoredBytes: 32 * GiB,
  /** Most entries and bytes of an archive that names each path of a directory; a longer one breaks off. */
  maxArchiveEntries: 2_000_000,
  maxArchiveBytes: 64 * GiB,
  /** Most uploads that arrive at the same time: in all, of one wallet that signed in, and from one other machine. */
  concurrentUploads: 16,
  uploadsPerWallet: 4,
  uploadsPerAddress: 8,
  uploadPace: { graceMs: MINUTE_MS, bytesPerSecond: 16 * 1024 } satisfies Pace,
  /** Most CARs that are sent to one other machine at the same time: each block of them is hashed. */
  carsPerAddress: 16,
  /** Blocks of contents that are read for anyone: some 50 µs of CPU time each. */
  blockRates: { perClient: { burst: 20_000, perSecond: 4_000 }, total: { burst: 50_000, perSecond: 8_000 } },
  /** Sign-ins from other machines, by address. */
  signIns: { burst: 60, perSecond: 1, concurrency: { total: 64, perClient: 16 } } satisfies ClientRateBounds,
  /** Most wallets that sign in for the first time within a day. */
  maxNewWallets: 100_000,
  /** Most sign-ins within the time in which a nonce can be used. */
  maxUsedNonces: 50_000,
  /** A nonce can be used for this long, seconds. */
  nonceSeconds: 300,
  /** Time that running requests get to finish when the service stops, ms. */
  stopMs: 10_000,
  /** Most open connections; one address, other than those of this machine, gets three quarters. */
  maxConnections: 4096,
}

export type PaymentLimits = Readonly<typeof paymentLimits>
