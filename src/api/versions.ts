/**
 * One of the versions of a key: by the id that clients know, where `null` is the version that was written without
 * versioning, or by the revision of its bytes.
 */
export type VersionRef = { readonly id: string } | { readonly revision: string }

/** What keeps a version from being removed: a retention, of which mode and end are present, a legal hold, or both. */
export interface ObjectLock {
  readonly mode?: LockMode
  /** End of the retention, ms since 1970. */
  readonly until?: number
  readonly hold?: true
}

export type LockMode = 'GOVERNANCE' | 'COMPLIANCE'

/** The retention of new objects of a bucket: mode and either of the periods, or nothing for none. */
export interface LockRule {
  readonly mode?: LockMode
  readonly days?: number
  readonly years?: number
}

type VersioningStatus = 'Enabled' | 'Suspended'

export interface BucketVersioning {
  /** Absent: the bucket was never versioned. */
  readonly status?: VersioningStatus
  /** Present for a bucket with object lock. */
  readonly lock?: LockRule
}

/** What a removal has done in a bucket that is or was versioned; nothing otherwise. */
export interface RemovalResult {
  /** Id of the removed version, or of the delete marker that the removal has added. */
  readonly versionId?: string
  /** The version of this id is a delete marker: one that was added, or one that was removed by its id. */
  readonly deleteMarker?: true
}

/** The version that a removal is about. */
export interface VersionRemoval {
  readonly id: string
  /** True for a caller who may remove a version in spite of a retention in GOVERNANCE mode. */
  readonly bypass: boolean
  /** The gateway removes the version only if this holds; one that is gone is no error. */
  readonly only?: RemovalCondition
  /** The version is removed only while another one is the current one of its key. */
  readonly noncurrent?: true | undefined
}

export type RemovalCondition =
  /**
   * The version has stopped to be current then: `since` of a listing. As many objects, at least, are newer than it and
   * not current either; delete markers do not count.
   */
  | { readonly noncurrentSince: string; readonly newer: number }
  /** It is a delete marker, and the only version of its key. */
  | { readonly alone: true }

/** A change of the lock of a version. What is absent stays. */
export interface LockChange {
  /** `null` ends it. */
  readonly retention?: { readonly mode: LockMode; readonly until: number } | null
  readonly hold?: boolean
}

export interface VersionQuery {
  readonly prefix: string
  /** '' lists without delimiter. */
  readonly delimiter: string
  /** Entries come after this key or common prefix; '' starts at the first. */
  readonly keyMarker: string
  /** Entries of `keyMarker` come after this version, also when it is gone by now; '' skips the key. */
  readonly versionMarker: string
  /** Most entries of all kinds together, 1 to 1000. */
  readonly limit: number
}

/** @template T an object as the lister describes it */
export type VersionEntry<T> =
  | {
      readonly kind: 'version'
      readonly object: T
      readonly versionId: string
      readonly isLatest: boolean
      /** RFC 3339: when another version took its place; for the current one, when it was written. */
      readonly since: string
    }
  | {
      readonly kind: 'marker'
      readonly key: string
      readonly versionId: string
      readonly isLatest: boolean
      /** RFC 3339. */
      readonly lastModified: string
      readonly revision: string
      /** RFC 3339: when another version took its place; for the current one, when it was made. */
      readonly since: string
    }
  | { readonly kind: 'prefix'; readonly prefix: string }

export interface VersionPage<T> {
  /** In UTF-8 byte order of key or prefix; the versions of a key from the newest to the oldest. */
  readonly entries: readonly VersionEntry<T>[]
  /** True when more follow, after the markers below. */
  readonly truncated: boolean
  readonly nextKey?: string
  /** Absent when the page ends with a prefix. */
  readonly nextVersion?: string
}

/**
 * What a gateway does with versions. Without the feature, all but `versioning` throw S3Error NotImplemented.
 * @template T an object as the gateway describes it
 */
export interface GatewayVersions<T> {
  versioning(bucket: string): Promise<BucketVersioning>
  /** Throws InvalidBucketState for the suspension of a bucket with object lock. */
  setVersioning(bucket: string, status: VersioningStatus): Promise<void>
  /** Gives the bucket object lock, for ever. Throws InvalidBucketState unless versioning is enabled. */
  setLockRule(bucket: string, rule: LockRule): Promise<void>
  /**
   * Throws InvalidRequest unless a new object may be locked here: a write that locks is refused before its bytes are
   * sent. Throws AccessDenied for an account or a key pair that may not lock.
   */
  requireLockable(bucket: string, key: string): Promise<void>
  listVersions(bucket: string, query: VersionQuery): Promise<VersionPage<T>>
  /**
   * @param ref absent: the current version
   * @param bypass true for a caller who may shorten or end a retention in GOVERNANCE mode
   */
  setLock(bucket: string, key: string, ref: VersionRef | undefined, change: LockChange, bypass: boolean): Promise<void>
}
