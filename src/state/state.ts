import type { ChecksumAlgorithm } from '../common/checksums.js'
import type { StoredHeaders } from '../gateway/gateway.js'

export type ChecksumType = 'FULL_OBJECT' | 'COMPOSITE'

export interface ObjectChecksum {
  readonly algorithm: ChecksumAlgorithm
  /** base64, with `-N` for a composite one. */
  readonly value: string
  readonly type: ChecksumType
}

/** What the gateway has no place for, about one object. Valid only while the gateway's object has the same `stamp` and size. */
export interface ObjectRecord {
  readonly bucket: string
  readonly key: string
  readonly stamp: string
  readonly size: number
  /** Unquoted. */
  readonly etag: string
  readonly contentType: string
  readonly headers: StoredHeaders
  readonly metadata: Readonly<Record<string, string>>
  readonly checksum?: ObjectChecksum
  /** Sizes of the parts in order, run-length coded: [bytes, how many parts in a row]. */
  readonly partSizes?: readonly (readonly [bytes: number, count: number])[]
  readonly tags?: readonly Tag[]
  readonly archive?: Archive
  /** The multipart upload that it comes from: completing that again, when nobody could be told that it was done, stores nothing again, and pays for nothing. */
  readonly uploadId?: string
}

/** What a plugin that keeps objects elsewhere too has to say of one. */
export interface Archive {
  /** The class that was asked for: `GLACIER`, `GLACIER_IR`. Absent: copies are kept elsewhere of an object that is as any other. */
  readonly storageClass?: string
  /** A copy was asked back: it is on its way, or here until (ms since 1970; Infinity is written as null: for good). */
  readonly restore?: { readonly ongoing: true } | { readonly until: number | null }
  /** Told as `x-amz-meta-<name>` by GET and HEAD. */
  readonly facts?: Readonly<Record<string, string>>
  /** The job that makes it so. */
  readonly jobId?: string
}

export interface Tag {
  readonly key: string
  readonly value: string
}

export interface ObjectRecords {
  get(bucket: string, key: string): Promise<ObjectRecord | undefined>
  /** In the order of `keys`, undefined where there is none. */
  getMany(bucket: string, keys: readonly string[]): Promise<(ObjectRecord | undefined)[]>
  /** Durable when it resolves. */
  set(record: ObjectRecord): Promise<void>
  delete(bucket: string, key: string): Promise<void>
}

/** A multipart upload under way. */
export interface UploadRecord {
  readonly uploadId: string
  readonly bucket: string
  /** When the bucket was made, where the gateway tells: another bucket of its name is not the one to complete it in. */
  readonly birth?: string
  readonly key: string
  /** Milliseconds since 1970. */
  readonly initiated: number
  /** Who began it: only this identity's account may go on with it. */
  readonly accessKeyId: string
  readonly contentType: string | undefined
  readonly headers: StoredHeaders
  readonly metadata: Readonly<Record<string, string>>
  readonly checksum?: { readonly algorithm: ChecksumAlgorithm; readonly type: ChecksumType }
  readonly tags?: readonly Tag[]
  /** The class that it is to be stored in, unless that is one as any other. */
  readonly storageClass?: string
}

export interface PartRecord {
  readonly partNumber: number
  readonly size: number
  /** Hex MD5 of the part. */
  readonly etag: string
  /** Milliseconds since 1970. */
  readonly lastModified: number
  readonly checksum?: { readonly algorithm: ChecksumAlgorithm; readonly value: string }
  /** File name of the staged bytes inside the upload's folder. */
  readonly file: string
}

/** What a finished upload answered, kept a while so that a repeated CompleteMultipartUpload answers the same. */
export interface CompletedUpload {
  readonly uploadId: string
  readonly bucket: string
  readonly key: string
  readonly accessKeyId: string
  readonly etag: string
  readonly checksum?: ObjectChecksum
  /** Of the object's archive. */
  readonly jobId?: string
  /** Hash of the part list that was asked for; another list under the same id is NoSuchUpload. */
  readonly request: string
}

/** Bytes of a part on their way to local disk. */
export interface PartWriter {
  write(chunk: Buffer): void | Promise<void>
  /** Makes the bytes durable (fsync of file and folder) and gives the name for PartRecord.file. NoSuchUpload when the upload has ended meanwhile. */
  finish(): Promise<string>
  /** Removes the bytes unless putPart has taken them. To be called whenever putPart was not, or failed; safe at any time. */
  discard(): Promise<void>
}

/** Failures of the record store are S3Error ServiceUnavailable here and in ObjectRecords; an upload id of another shape than ours is an unknown one. */
export interface Uploads {
  create(upload: UploadRecord): Promise<void>
  get(uploadId: string): Promise<UploadRecord | undefined>
  /** All uploads of a bucket, any order. */
  list(bucket: string): Promise<UploadRecord[]>
  /** NoSuchUpload when there is none. */
  openPart(uploadId: string, partNumber: number): Promise<PartWriter>
  /** Durable when it resolves; replaces an earlier part of that number and removes its bytes. NoSuchUpload when the upload has ended meanwhile. */
  putPart(uploadId: string, part: PartRecord): Promise<void>
  /** In order of part number. `after` is a part number, exclusive; bounded memory. */
  listParts(uploadId: string, after: number, limit: number): Promise<PartRecord[]>
  /** Reads a staged part's bytes. */
  readPart(uploadId: string, part: PartRecord, sink: (chunk: Buffer) => void | Promise<void>): Promise<void>
  completed(uploadId: string): Promise<CompletedUpload | undefined>
  /** Remembers the outcome durably, then forgets the upload and removes its bytes. */
  finish(done: CompletedUpload): Promise<void>
  /** Forgets the upload and removes its bytes, also those being written. NoSuchUpload when there is none. */
  abort(uploadId: string): Promise<void>
  /** Removes uploads begun before `before` (ms since 1970) and bytes that belong to no upload. Returns how many uploads. */
  sweep(before: number): Promise<number>
}

/** Not reentrant: whoever asks for a lock that overlaps one it holds waits for ever. */
export interface Locks {
  /** One at a time per bucket and key, first come first served. */
  withKey<T>(bucket: string, key: string, run: () => Promise<T>): Promise<T>
  /** Waits for and keeps out every key that begins with `prefix`, itself too (legacy removal of an empty folder). */
  withSubtree<T>(bucket: string, prefix: string, run: () => Promise<T>): Promise<T>
  /** As withKey, for anything else that is named (an upload id, a job). */
  withName<T>(name: string, run: () => Promise<T>): Promise<T>
}

/** Records of one kind. Every failure is thrown as S3Error ServiceUnavailable, none answered with "no such record". */
export interface Records<T> {
  get(key: string): Promise<T | undefined>
  /** Durable when it resolves. */
  set(key: string, value: T): Promise<void>
  delete(key: string): Promise<void>
  /** All of them, in no order; one written or removed meanwhile may or may not come. */
  entries(): AsyncIterable<[key: string, value: T]>
}

/** Everything the proxy itself remembers. */
export interface State {
  /** True when other processes may work with the same records. */
  readonly shared: boolean
  /** Records of a feature or plugin of its own. A name is lower-case letters, digits and `-`; bound to one type by its only user. */
  records<T>(name: string): Records<T>
  readonly objects: ObjectRecords
  readonly uploads: Uploads
  readonly locks: Locks
  /** A spool file for a body of unknown length: write it, read it back, remove it. */
  spool(): Promise<Spool>
  /** Gives up parts and spools that are being written, commits what waits, and frees the folder. */
  close(): Promise<void>
}

export interface Spool {
  write(chunk: Buffer): void | Promise<void>
  /** Bytes written so far. */
  readonly size: number
  read(sink: (chunk: Buffer) => void | Promise<void>): Promise<void>
  discard(): Promise<void>
}
