import { MINUTE_MS } from '../../common/time.js'

const KiB = 1024
const MiB = 1024 * KiB

export const platformLimits = {
  /** Largest body of JSON or of a form, without its files, bytes. */
  maxFieldBytes: 64 * KiB,
  /** Largest file in a multipart form, bytes. */
  maxFileBytes: 48 * MiB,
  /** Most fields of a body. */
  maxFields: 100,
  /** A request whose body stops arriving for this long is aborted, ms. */
  bodyIdleMs: 60_000,
  /** A body without files must arrive within this time, ms. */
  bodyMs: 5 * MINUTE_MS,
  /** A form with a file must arrive within this time, ms: it holds the memory for a file until then. */
  uploadMs: 10 * MINUTE_MS,
  /** Most files that are received and read at the same time. */
  concurrentUploads: 4,
  /** Most uploads of one user: one of them runs, the others wait. */
  uploadsOfUser: 8,
  /** Most open tasks of one user, and most open deals in them. */
  maxOpenTasks: 10_000,
  maxOpenDeals: 1_000_000,
  /** Most uploads of all users that wait. */
  uploadsWaiting: 100,
  /** Time that running requests get to finish when the platform stops, ms. */
  stopMs: 10_000,
  /** Most open connections; one address, other than those of this machine, gets three quarters. */
  maxConnections: 4096,
}

export type PlatformLimits = Readonly<typeof platformLimits>
