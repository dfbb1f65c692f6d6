/**
 * Bounds of S3 and of this server.
 * Sources: https://docs.aws.amazon.com/AmazonS3/latest/userguide/qfacts.html and the user guide's object pages.
 */
export interface Limits extends ConfiguredLimits {
  /** Largest object in one PUT or copy, bytes. */
  readonly maxPutBytes: number
  /** Largest object of a multipart upload, bytes. */
  readonly maxObjectBytes: number
  /** Smallest part except the last, bytes. */
  readonly minPartBytes: number
  readonly maxParts: number
  /** Total of the names and values of x-amz-meta-*, bytes. */
  readonly maxMetadataBytes: number
  readonly maxKeyBytes: number
  /** Keys in one DeleteObjects. */
  readonly maxDeleteKeys: number
  /** Bodies up to this size are collected, verified and forwarded in one piece, bytes. */
  readonly smallBodyBytes: number
  /** Time that one hook of one plugin may delay a response, ms. */
  readonly hookDeadlineMs: number
}

/** The bounds that operators choose: each has an option of its name, in `limitOptions`. */
export interface ConfiguredLimits {
  /** Largest XML or JSON request body, bytes. */
  readonly maxDocumentBytes: number
  /** Idle timeout of request bodies, ms. */
  readonly bodyIdleMs: number
  /** Minimum rate of request bodies, bytes per second, averaged over `2 * bodyIdleMs` of waiting; 0 for no minimum. */
  readonly minBodyRate: number
  /** Request bodies that are read at the same time. Unsigned clients get at most half of them. */
  readonly maxBodies: number
  /** Part of `maxBodies` for one access key, or for one network address of unsigned clients. */
  readonly maxBodiesPerClient: number
  /** Total size of spooled bodies of unknown length, bytes. Unsigned clients get at most half of it. */
  readonly maxSpoolBytes: number
  /** Part of `maxSpoolBytes` for one client. */
  readonly maxSpoolBytesPerClient: number
  /** Total size of staged parts of multipart uploads, which stay on disk until their upload ends, bytes. */
  readonly maxStagedBytes: number
  /** Part of `maxStagedBytes` for uploads of one access key. */
  readonly maxStagedBytesPerClient: number
  /** Free bytes on the disk of the data folder below which `/-/ready` answers 503; 0 for never. */
  readonly minFreeBytes: number
  /** Time that a write waits for an earlier write to the same key, ms; then it fails with SlowDown. */
  readonly keyWaitMs: number
  /** Deadline of a plugin's operations and of calls to its storage classes, ms; see `Operation.deadlineMs`. */
  readonly pluginDeadlineMs: number
}
