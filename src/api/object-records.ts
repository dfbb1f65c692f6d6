import type { Authorized, ObjectAcl, Tag } from './access.js'
import type { Encrypted } from './encryption.js'
import type { StoredHeaders } from './gateway.js'
import type { HeldLock } from './locks.js'
import type { ObjectChecksum } from './object-checksum.js'

/**
 * The facts of one object that the gateway cannot hold. Valid only while the gateway's object has the same `revision`
 * and size.
 */
export interface ObjectRecord {
  readonly bucket: string
  readonly key: string
  readonly revision: string
  /** Bytes that the gateway has. */
  readonly size: number
  readonly encrypted?: Encrypted
  /** Unquoted. */
  readonly etag: string
  readonly contentType: string
  readonly headers: StoredHeaders
  readonly metadata: Readonly<Record<string, string>>
  readonly checksum?: ObjectChecksum
  /** Sizes of the parts in order, run-length encoded: [bytes, number of consecutive parts]. */
  readonly partSizes?: readonly (readonly [bytes: number, count: number])[]
  readonly tags?: readonly Tag[]
  readonly archive?: Archive
  /** The storage class that the client asked for, if it only names a price, such as STANDARD_IA. */
  readonly label?: string
  /**
   * The multipart upload that created the object: completing it again, when the client has missed the first answer,
   * neither stores nor pays again.
   */
  readonly uploadId?: string
  readonly authorized?: Authorized
  /** Fence of the lock under which the record was written; absent in records of an older release. See HeldLock. */
  readonly fence?: number
  /** Absent: the object belongs to the owner of its bucket, who alone has access. */
  readonly acl?: ObjectAcl
  /**
   * Identifies the write that stored the bytes, with the ETag of the gateway. Present where the gateway keeps it with
   * them and has no other sign of an overwrite than a time: a download that shows it has these bytes.
   */
  readonly mark?: string
  /** See GatewayObject.versionId. Absent: the version was written before its bucket was versioned, and is `null`. */
  readonly versionId?: string
}

/** The state of an object whose copies a plugin also keeps elsewhere. */
export interface Archive {
  /** The requested class: `GLACIER`, `GLACIER_IR`. Absent for a regular object with copies elsewhere. */
  readonly storageClass?: string
  /**
   * A restored copy: in progress, or available until a time (milliseconds since 1970; null, the JSON form of Infinity:
   * permanently).
   */
  readonly restore?: { readonly ongoing: true } | { readonly until: number | null }
  /** Returned as `x-amz-meta-<name>` by GET and HEAD. */
  readonly facts?: Readonly<Record<string, string>>
  /** The job that archives the object. */
  readonly jobId?: string
  /** No copy is kept elsewhere, although the class asks for one. */
  readonly failed?: true
  /** Revisions that the same content had with other headers: deals may have these bytes. Oldest first. */
  readonly earlierRevisions?: readonly string[]
}

export interface ObjectRecords {
  get(bucket: string, key: string): Promise<ObjectRecord | undefined>
  /** In the order of `keys`; undefined where there is none. */
  getMany(bucket: string, keys: readonly string[]): Promise<(ObjectRecord | undefined)[]>
  /**
   * Replaces the record of the key, with the fence of the lock that the caller holds on the key. A record with a higher
   * fence stands: a write that the store receives late never replaces that of a later holder. Durable once it resolves.
   * Throws S3Error ServiceUnavailable when the lock is lost.
   */
  set(record: ObjectRecord, lock: HeldLock): Promise<void>
  /** Removes the record of the key, by the rules of `set`. */
  delete(bucket: string, key: string, lock: HeldLock): Promise<void>
  /** The record of one version of a key, current or not. */
  ofRevision(bucket: string, key: string, revision: string): Promise<ObjectRecord | undefined>
  /** In the order of `versions`; undefined where there is none. */
  manyOfRevisions(
    bucket: string,
    versions: readonly (readonly [key: string, revision: string])[],
  ): Promise<(ObjectRecord | undefined)[]>
  /**
   * Sets the record of a write in a versioned bucket: the record of the version before stays, unless that was the
   * `null` version and the new one is, too. When the lock is lost, the record of a version with an id is set for that
   * version alone.
   */
  setNewest(record: ObjectRecord, lock: HeldLock): Promise<void>
  /** Sets the record of one version, wherever that is, and no other. */
  setVersion(record: ObjectRecord, lock: HeldLock): Promise<void>
  /** Removes the record of one version. Resolves true if the record of the key was that of the version. */
  deleteVersion(bucket: string, key: string, revision: string, lock: HeldLock): Promise<boolean>
}
