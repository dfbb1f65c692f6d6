import { MINUTE_MS } from '../../common/time.js'

const KiB = 1024
const MiB = 1024 * KiB

export interface PlatformLimits {
  /** Largest body of JSON or of a form, without its files, bytes. */
  readonly maxFieldBytes: number
  /** Largest file in a multipart form, bytes. */
  readonly maxFileBytes: number
  /** Most fields of a body. */
  readonly maxFields: number
  /** A request whose body stops arriving for this long is aborted, ms. */
  readonly bodyIdleMs: number
  /** A body without files must arrive within this time, ms. */
  readonly bodyMs: number
  /** A form with a file must arrive within this time, ms: it holds the memory for a file until then. */
  readonly uploadMs: number
  /** Most files that are received and read at the same time. */
  readonly concurrentUploads: number
  /** Most uploads of one user: one of them runs, the others wait. */
  readonly uploadsOfUser: number
  /** Most open tasks of one user, and most open deals in them. */
  readonly maxOpenTasks: number
  readonly maxOpenDeals: number
  /** Most uploads of all users that wait. */
  readonly uploadsWaiting: number
  /** Time that running requests get to finish when the platform stops, ms. */
  readonly stopMs: number
  /** Most open connections; one address, other than those of this machine, gets three quarters. */
  readonly maxConnections: number
}

export const platformLimits: PlatformLimits = Object.freeze({
  maxFieldBytes: 64 * KiB,
  maxFileBytes: 48 * MiB,
  maxFields: 100,
  bodyIdleMs: 60_000,
  bodyMs: 5 * MINUTE_MS,
  uploadMs: 10 * MINUTE_MS,
  concurrentUploads: 4,
  uploadsOfUser: 8,
  uploadsWaiting: 100,
  maxOpenTasks: 10_000,
  maxOpenDeals: 1_000_000,
  stopMs: 10_000,
  maxConnections: 4096,
})
