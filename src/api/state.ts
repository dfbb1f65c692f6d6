import type { ChecksumAlgorithm } from '../../common/checksums/checksums.js'
import type { Logging } from '../../common/log.js'
import type { Authorized, ObjectAcl, Tag } from './access.js'
import type { Encrypted, ServerKey, UploadEncryption } from './encryption.js'
import type { StoredHeaders } from './gateway.js'
import type { HeldLock, Locks } from './locks.js'
import type { ObjectLock } from './versions.js'

export type ChecksumType = 'FULL_OBJECT' | 'COMPOSITE'

export interface ObjectChecksum {
  readonly algorithm: ChecksumAlgorithm
  /** Base64, with `-N` for a composite checksum. */
  readonly value: string
  readonly type: ChecksumType
}

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
  /** That of the lock under which it was written; absent in records of an older release. See HeldLock. */
  readonly fence?: number
  /** Absent: the object belongs to the owner of its bucket, who alone has access. */
  readonly acl?: ObjectAcl
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
  /** As `set`. */
  delete(bucket: string, key: string, lock: HeldLock): Promise<void>
  /** The record of one version of a key, current or not. */
  ofRevision(bucket: string, key: string, revision: string): Promise<ObjectRecord | undefined>
  /** In the order of `versions`; undefined where there is none. */
  manyOfRevisions(
    bucket: string,
    versions: readonly (readonly [key: string, revision: string])[],
  ): Promise<(ObjectRecord | undefined)[]>
  /**
   * As `set`, for a write in a versioned bucket: the record of the version before stays, unless that was the `null`
   * version and the new one is, too. When the lock is lost, the record of a version with an id is set for that version
   * alone.
   */
  setNewest(record: ObjectRecord, lock: HeldLock): Promise<void>
  /** As `set`, for a change to one version: replaces its record, wherever that is, and no other. */
  setVersion(record: ObjectRecord, lock: HeldLock): Promise<void>
  /** As `delete`, for one version. Resolves true if the record of the key was that of the version. */
  deleteVersion(bucket: string, key: string, revision: string, lock: HeldLock): Promise<boolean>
}

/** A multipart upload in progress. */
export interface UploadRecord {
  readonly uploadId: string
  readonly bucket: string
  /** Id of the data folder in which its parts are staged; absent in records of an older release. */
  readonly home?: string
  /** Creation time of the bucket, where the gateway states it: a later bucket of that name must not get the object. */
  readonly birth?: string
  readonly key: string
  /** Milliseconds since 1970. */
  readonly initiated: number
  /** The identity that began it: only its account may continue. */
  readonly accessKeyId: string
  /** Canonical id of the account that began it; absent in records of an older release. */
  readonly account?: string
  /** The identity has rights, policies or a session of its own: to clients it is a user of the account. */
  readonly byUser?: true
  /** The same, if that account owned the bucket; absent for other accounts. */
  readonly owner?: string
  /** The headers that began it, as far as conditions of policies judge later requests by them. */
  readonly asked?: Readonly<Record<string, string>>
  readonly contentType: string | undefined
  readonly headers: StoredHeaders
  readonly metadata: Readonly<Record<string, string>>
  readonly checksum?: { readonly algorithm: ChecksumAlgorithm; readonly type: ChecksumType }
  readonly tags?: readonly Tag[]
  /** See ObjectRecord.acl. */
  readonly acl?: ObjectAcl
  /** The storage class to store it in, unless regular. */
  readonly storageClass?: string
  /** See ObjectRecord.label. */
  readonly label?: string
  readonly encryption?: UploadEncryption
  /** Authorizations of the caller who began it. */
  readonly authorized?: Authorized
  /** The lock that its object gets. */
  readonly lock?: ObjectLock
  /** The attempts to complete it that may have taken effect. */
  readonly attempts?: readonly CompletionAttempt[]
  /** The same, in records of an older release. */
  readonly attempted?: CompletionAttempt
}

/** What was known right before the bytes of a completed upload were committed. */
export interface CompletionAttempt {
  /** As in CompletedUpload. */
  readonly request: string
  /** Revision of the object that was in place; null: none. */
  readonly before: string | null
  /** The gateway has shown afterwards that the attempt took effect. */
  readonly landed?: true
  /** Of the object that it has made, if that is known. */
  readonly versionId?: string
}

export interface PartRecord {
  readonly partNumber: number
  readonly size: number
  /** Hex MD5 of the part. */
  readonly etag: string
  /** Milliseconds since 1970. */
  readonly lastModified: number
  readonly checksum?: { readonly algorithm: ChecksumAlgorithm; readonly value: string }
  /** CRC64NVME, base64, in place of `checksum` where neither upload nor client names an algorithm. No list has it. */
  readonly crc64?: string
  /** File name of the staged bytes inside the upload's folder. */
  readonly file: string
  /** CRC-32 of the staged bytes; absent for a part of an earlier version. */
  readonly crc?: number
  /** Staged bytes, if they are encrypted and therefore more than `size`. */
  readonly staged?: number
  /** Of the encrypted object that it is a copy of, if its upload has begun without encryption: it is not lost. */
  readonly copied?: ServerKey
}

/**
 * The answer to a finished upload, kept for a while so that a repeated CompleteMultipartUpload gets the same answer.
 */
export interface CompletedUpload {
  readonly uploadId: string
  readonly bucket: string
  readonly key: string
  readonly accessKeyId: string
  readonly etag: string
  readonly checksum?: ObjectChecksum
  readonly encrypted?: Omit<Encrypted, 'header'>
  /** See GatewayObject.versionId. */
  readonly versionId?: string
  /** Job id of the object's archive. */
  readonly jobId?: string
  /** The x-amz-expiration of the answer. */
  readonly expiration?: string
  /** Hash of the requested part list. Another list under the same id is NoSuchUpload. */
  readonly request: string
}

/** Writes the bytes of a part to local disk. */
export interface PartWriter {
  write(chunk: Buffer): void | Promise<void>
  /**
   * Makes the bytes durable (fsync of file and folder) and resolves with the name for PartRecord.file. Throws
   * NoSuchUpload when the upload has ended.
   */
  finish(): Promise<string>
  /**
   * Removes the bytes unless putPart has taken them. Callers call it whenever they did not call putPart or it failed.
   * Safe at any time.
   */
  discard(): Promise<void>
}

/** A bound of the uploads that an account has under way. */
export interface UploadBound {
  /** Absent: no bound. */
  readonly most?: number | undefined
  /** Who gets the lines about the lock of the account. */
  readonly logger?: Logging | undefined
}

/**
 * Failures of the record store are S3Error ServiceUnavailable, here and in ObjectRecords. A malformed upload id is an
 * unknown one.
 */
export interface Uploads {
  /**
   * Records an upload, unless its account has as many under way as `bound` allows: resolves with their number then. All
   * proxies on the state count together.
   */
  create(upload: UploadRecord, bound?: UploadBound): Promise<number | undefined>
  get(uploadId: string): Promise<UploadRecord | undefined>
  /**
   * Throws ServiceUnavailable when another proxy has staged the parts of the upload. Nothing changes, and that proxy
   * still has them.
   */
  requireHere(upload: UploadRecord): Promise<void>
  /** All uploads of a bucket, in any order. */
  list(bucket: string): Promise<UploadRecord[]>
  /**
   * Throws NoSuchUpload when there is none, ServiceUnavailable when another proxy has staged its parts, and SlowDown
   * when staged parts have reached their bounds. The writer throws SlowDown when the part grows beyond `length` and
   * them.
   * @param length size of the part in bytes, if known
   * @param logger the request, here and below: the lines about what it does have its id
   */
  openPart(uploadId: string, partNumber: number, length?: number, logger?: Logging): Promise<PartWriter>
  /**
   * Durable once it resolves. Replaces an earlier part of that number and removes its bytes. Throws NoSuchUpload when
   * the upload has ended.
   */
  putPart(uploadId: string, part: PartRecord, logger?: Logging): Promise<void>
  /** In order of part number, also of parts that another proxy has staged, in bounded memory. `after` is exclusive. */
  listParts(uploadId: string, after: number, limit: number, logger?: Logging): Promise<PartRecord[]>
  /** Reads a staged part's bytes. */
  readPart(uploadId: string, part: PartRecord, sink: (chunk: Buffer) => void | Promise<void>): Promise<void>
  completed(uploadId: string): Promise<CompletedUpload | undefined>
  /**
   * Changes the attempts of the upload that are on record, atomically among proxies. Durable once it resolves. Throws
   * NoSuchUpload when the upload has ended. Errors of `change` pass unchanged.
   */
  attempt(
    uploadId: string,
    change: (attempts: readonly CompletionAttempt[]) => readonly CompletionAttempt[],
  ): Promise<void>
  /** Records the outcome durably, then removes the upload and its bytes. */
  finish(done: CompletedUpload, logger?: Logging): Promise<void>
  /**
   * Removes the upload and its bytes, including those being written; the sweep of another proxy removes bytes staged
   * there. Throws NoSuchUpload when there is none.
   */
  abort(uploadId: string, logger?: Logging): Promise<void>
  /**
   * Removes uploads begun before `before` (milliseconds since 1970) and bytes without an upload. Leaves uploads of
   * another proxy alone for another day, because that proxy may keep them longer. Resolves with the number of uploads.
   */
  sweep(before: number): Promise<number>
}

/** Records of one kind. Every failure is S3Error ServiceUnavailable; none is reported as "no such record". */
export interface Records<T> {
  get(key: string): Promise<T | undefined>
  /** In the order of `keys`; undefined where there is none. Reads the store once. */
  getMany(keys: readonly string[]): Promise<(T | undefined)[]>
  /** Durable once it resolves. */
  set(key: string, value: T): Promise<void>
  /**
   * For every change that depends on the record: calls `to` with the present record, and again when another proxy has
   * changed it meanwhile. Undefined stands for no record; returning the given value means no change. Resolves to the
   * present record, which is durable then. Errors of `to` pass unchanged.
   */
  change(key: string, to: (value: T | undefined) => T | undefined | Promise<T | undefined>): Promise<T | undefined>
  delete(key: string): Promise<void>
  /** All records, in no order. A record written or removed meanwhile may or may not be included. */
  entries(): AsyncIterable<[key: string, value: T]>
}

/** The state of the proxy. */
export interface State {
  /** True when other processes may use the same records. */
  readonly shared: boolean
  /** Name of this process among those that use the same data folder, for files of its own. */
  readonly process: string
  /**
   * Records of a feature or plugin. A name has lower-case letters, digits and `-`, and one user, which binds its type.
   */
  records<T>(name: string): Records<T>
  readonly objects: ObjectRecords
  readonly uploads: Uploads
  readonly locks: Locks
  /** Messages to and from the other proxies on the store. */
  readonly signals: Signals
  /** Bytes of parts that wait for the end of their upload, as far as this process knows. */
  stagedBytes(): number
  /** A spool file for a body of unknown length. */
  spool(): Promise<Spool>
  /**
   * Awaited before actions that spend money or open a bucket. Queries the store. Throws S3Error ServiceUnavailable when
   * the store of records came back empty or older or was replaced, and no operator has accepted that.
   */
  requireIntact(): Promise<void>
  /**
   * Awaited before a record is written that prevents a second payment or keeps a bucket closed. A store that is
   * restored from a backup of the time before is noticed then. Throws S3Error ServiceUnavailable.
   */
  raiseMark(): Promise<void>
  /**
   * Names the loss of records that an operator has accepted last, undefined for none. Queries the store. Throws S3Error
   * ServiceUnavailable as `requireIntact` does.
   */
  acceptedLoss(): Promise<string | undefined>
  /** The problem that `requireIntact` has found, in words, as of the last look. */
  problem(): string | undefined
  /** Abandons parts and spools that are being written, commits pending writes, and unlocks the folder. */
  close(): Promise<void>
}

/**
 * `lease`: the token of a waiter whose lease is free; `settings`: the bucket whose settings changed; `traffic`: what
 * clients have taken of their rates; `running`: their requests in progress.
 */
export type Topic = 'lease' | 'settings' | 'traffic' | 'running'

/**
 * Messages among the proxies on one store, for waking up earlier than by a timer. A message may be lost: correctness
 * must not depend on one.
 */
export interface Signals {
  /** Sends a text without line breaks, at most 1 KiB, to all other proxies. Never fails. */
  send(topic: Topic, text: string): void
  /**
   * Calls `heard` for each message of the topic, and `missed` when some may have been lost.
   * @returns a function that ends it
   */
  on(topic: Topic, heard: (text: string) => void, missed?: () => void): () => void
}

/** A body of unknown length, on disk. */
export interface Spool {
  write(chunk: Buffer): void | Promise<void>
  /** Bytes written so far. */
  readonly size: number
  read(sink: (chunk: Buffer) => void | Promise<void>): Promise<void>
  discard(): Promise<void>
}
