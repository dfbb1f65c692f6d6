/** Bounds of S3 and of this server. Sources: https://docs.aws.amazon.com/AmazonS3/latest/userguide/qfacts.html and the user guide's object pages. */
export interface Limits {
  /** Largest XML or JSON request body, bytes. */
  readonly maxDocumentBytes: number
  /** Largest object in one PUT or copy, bytes. */
  readonly maxPutBytes: number
  /** Largest object put together from parts, bytes. */
  readonly maxObjectBytes: number
  /** Smallest part but the last, bytes. */
  readonly minPartBytes: number
  readonly maxParts: number
  /** Names and values of x-amz-meta-* together, bytes. */
  readonly maxMetadataBytes: number
  readonly maxKeyBytes: number
  /** Keys in one DeleteObjects. */
  readonly maxDeleteKeys: number
  /** Bodies up to this size are collected, verified and sent on in one piece, bytes. */
  readonly smallBodyBytes: number
  /** A body on which nothing arrives for this long is given up, ms. */
  readonly bodyIdleMs: number
  /** How long an operation of a plugin, or a call of its storage classes, may take to answer, ms; see `Operation.deadlineMs`. */
  readonly pluginDeadlineMs: number
  /** How long one hook of one plugin may hold an answer up, ms. */
  readonly hookDeadlineMs: number
}

const KiB = 1024
const MiB = 1024 * KiB
const GiB = 1024 * MiB

export const defaultLimits: Limits = Object.freeze({
  maxDocumentBytes: 2 * MiB,
  maxPutBytes: 5 * GiB,
  maxObjectBytes: 50 * 1024 * GiB,
  minPartBytes: 5 * MiB,
  maxParts: 10_000,
  maxMetadataBytes: 2 * KiB,
  maxKeyBytes: 1024,
  maxDeleteKeys: 1000,
  smallBodyBytes: 256 * KiB,
  bodyIdleMs: 60_000,
  pluginDeadlineMs: 120_000,
  hookDeadlineMs: 10_000,
})
