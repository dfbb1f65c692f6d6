const KiB = 1024
const MiB = 1024 * KiB

/** Bounds of the task platform. */
export interface PlatformLimits {
  /** Largest body of JSON or of a form, without its files, bytes. */
  readonly maxFieldBytes: number
  /** Largest file in a multipart form, bytes. */
  readonly maxFileBytes: number
  /** Most fields of a body. */
  readonly maxFields: number
  /** A request whose body stops arriving for this long is aborted, ms. */
  readonly bodyIdleMs: number
  /** Time that running requests get to finish when the platform stops, ms. */
  readonly stopMs: number
}

export const platformLimits: PlatformLimits = Object.freeze({
  maxFieldBytes: 64 * KiB,
  maxFileBytes: 48 * MiB,
  maxFields: 100,
  bodyIdleMs: 60_000,
  stopMs: 10_000,
})
