import type { ChecksumAlgorithm } from '../../common/checksums/checksums.js'
import type { Logging } from '../../common/log.js'
import type { Authorized, ObjectAcl, Tag } from './access.js'
import type { Encrypted, ServerKey, UploadEncryption } from './encryption.js'
import type { StoredHeaders } from './gateway.js'
import type { ChecksumType, ObjectChecksum } from './object-checksum.js'
import type { ObjectLock } from './versions.js'

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
  /** Hash of the requested part list, as in CompletedUpload. */
  readonly request: string
  /** Revision of the object that was in place; null: none. */
  readonly before: string | null
  /** The gateway has shown afterwards that the attempt took effect. */
  readonly landed?: true
  /** Version id of the object that it has made, if that is known. */
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
  /** Encryption of the object that it is a copy of, if its upload has begun without encryption: it is not lost. */
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
  /** Logs the lines about the lock of the account. */
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
