import type { ChecksumAlgorithm } from '../../common/checksums/checksums.js'
import type { Authorized, ObjectAcl, Tag } from './access.js'
import type { CustomerKey, Encrypted, EncryptionOrder, ServerKey, UploadEncryption } from './encryption.js'
import type { ByteRange, Download, ListQuery, StoredHeaders, UploadAttributes } from './gateway.js'
import type { ObjectEventName, Origin } from './hooks.js'
import type { ObjectChecksum } from './object-checksum.js'
import type { Archive, ObjectRecord } from './object-records.js'
import type { BodyFacts, BodyOptions, ByteSink } from './request.js'
import type { PartRecord, UploadRecord } from './uploads.js'
import type { ObjectLock, RemovalResult, VersionPage, VersionQuery, VersionRef, VersionRemoval } from './versions.js'

/** Checksums of the parts of an object, in the order of the parts. */
export interface PartChecksums {
  readonly algorithm: ChecksumAlgorithm
  /** Base64. One per part, at most 10,000. */
  readonly values: readonly string[]
}

/** An object as S3 shows it: the facts of the gateway, joined with the record if it describes these bytes. */
export interface StoredObject {
  readonly bucket: string
  readonly key: string
  /** Bytes of the content. */
  readonly size: number
  /** Present if the gateway has other bytes than the content: an age file. */
  readonly encrypted?: Encrypted
  /** Bytes that the gateway has, if the object is encrypted. */
  readonly storedSize?: number
  /** Unquoted. The MD5 of the body in hex, or a text with `-` in it. */
  readonly etag: string
  /** RFC 3339. */
  readonly lastModified: string
  readonly contentType: string
  readonly headers: StoredHeaders
  readonly metadata: Readonly<Record<string, string>>
  readonly checksum?: ObjectChecksum
  readonly partSizes?: ObjectRecord['partSizes']
  readonly tags?: readonly Tag[]
  /** See ObjectRecord.acl. */
  readonly acl?: ObjectAcl
  readonly archive?: Archive
  /** See ObjectRecord.label. */
  readonly label?: string
  /** The multipart upload that created the object. */
  readonly uploadId?: string
  /** The entries of `metadata` that may state payment terms. */
  readonly authorized?: Authorized
  /** True when the gateway holds no copy of the bytes: they have to be restored first. */
  readonly cold: boolean
  /** Changes with every overwrite. */
  readonly revision: string
  /** Identifies the write that created the object, where the gateway states it: see GatewayObject. */
  readonly writeId?: string
  /** See ObjectRecord.mark. */
  readonly mark?: string
  /** The gateway keeps a part of the record, too. */
  readonly recordAtGateway?: true
  /** The ACL is known from the gateway alone, and opens nothing. */
  readonly aclAtGateway?: true
  /** See GatewayObject.versionId. */
  readonly versionId?: string
  readonly lock?: ObjectLock
}

export type StoreEntry =
  | {
      readonly kind: 'object'
      readonly key: string
      /** Bytes of the content: see StoredObject. */
      readonly size: number
      readonly storedSize?: number
      readonly etag: string
      readonly lastModified: string
      readonly checksum?: ObjectChecksum
      readonly archive?: Archive
      readonly label?: string
      readonly tags?: readonly Tag[]
      readonly cold: boolean
    }
  | { readonly kind: 'prefix'; readonly prefix: string }

export interface StorePage {
  readonly entries: readonly StoreEntry[]
  readonly truncated: boolean
}

export interface ObjectPage {
  readonly objects: readonly StoredObject[]
  readonly truncated: boolean
}

/** The source of the bytes of a new object: the body of a request, a copied object or staged parts. */
export interface Source {
  /** Bytes; undefined when not known in advance. */
  readonly length: number | undefined
  /** MD5 of the bytes, if it is known in advance; `stream` fails when they have another one. */
  readonly declaredMd5?: Buffer | undefined
  /** Resolves once the sink has received all bytes and they are verified. */
  stream(sink: ByteSink, options?: BodyOptions): Promise<BodyFacts>
}

/** Throws S3Error when the present object (undefined for none) must not be replaced or removed. */
export type Precondition = (current: StoredObject | undefined) => void

/** The cause of a change to an object. */
export interface Cause {
  readonly name: ObjectEventName
  readonly origin: Origin
}

export interface PutRequest {
  readonly bucket: string
  readonly key: string
  readonly source: Source
  /** `label`: see ObjectRecord. */
  readonly attributes: Omit<UploadAttributes, 'etag' | 'lock'> & { readonly label?: string }
  /** ETag to store when it is not the MD5 of the body. */
  readonly etag?: string
  /** Checksum to store when it is not the one that the source declares. */
  readonly checksum?: ObjectChecksum
  /** Algorithm of a checksum to compute when the source declares none. Default: see `defaultChecksum`. */
  readonly wantChecksum?: ObjectChecksum['algorithm']
  /** Default: what the bucket or the server says. For an upload, what it has begun with. */
  readonly encryption?: EncryptionOrder | UploadEncryption | 'none' | undefined
  /** The source is an age file already, and its facts are those of the content. The event orders nothing. */
  readonly sealed?: Encrypted
  readonly partSizes?: ObjectRecord['partSizes']
  readonly partChecksums?: PartChecksums
  readonly tags?: readonly Tag[]
  /** See ObjectRecord.acl. */
  readonly acl?: ObjectAcl
  readonly archive?: Archive
  /** See UploadAttributes. */
  readonly lock?: ObjectLock | undefined
  /** The multipart upload that this write completes. */
  readonly uploadId?: string
  /**
   * The entries of `attributes.metadata` that may state payment terms, from `Context.authorize`. Without it, none may.
   */
  readonly authorized?: Authorized | undefined
  /** Identifies the write if the same write may be repeated: when it is already stored, its condition counts as met. */
  readonly writeId?: string
  readonly precondition?: Precondition
  /** What must be known about the write when its outcome is not. */
  readonly attempt?: Attempt
  /** The event for the hooks. */
  readonly event: Cause
  /** Largest accepted body, bytes. */
  readonly maxBytes: number
}

/**
 * What became of an object whose header is to be made anew: `Plain` is not encrypted, `Current` has such a header, and
 * the others stay as they are.
 */
export type Rewrapped =
  | { readonly outcome: 'Plain' | 'Current' | 'Gone' }
  /** `cid`: of the bytes before, if a deal has them. */
  | { readonly outcome: 'Rewrapped'; readonly bytes: number; readonly cid?: string }
  | { readonly outcome: 'Skipped'; readonly why: string }

export interface Attempt {
  /** Awaited before anything is sent. `before`: revision of the object in place; null: none. */
  begin(before: string | null): Promise<void>
  /** The write took effect, after its client got an unknown outcome. */
  landed(made: Pick<PutResult, 'versionId'>): Promise<void>
  /** The write certainly has no effect: the gateway has refused it, or was not reached. */
  failed(): Promise<void>
}

/** A replacement for all metadata of an object. */
export interface MetadataReplacement
  extends Pick<PutRequest, 'bucket' | 'key' | 'attributes' | 'tags' | 'acl' | 'archive' | 'authorized' | 'event'> {
  /** Revision of the object to change. */
  readonly revision: string
}

export interface PutResult {
  /** Present if the object was encrypted. */
  readonly encrypted?: Encrypted
  readonly etag: string
  readonly lastModified: string
  readonly size: number
  readonly checksum?: ObjectChecksum
  /** See GatewayObject.versionId. */
  readonly versionId?: string
  /** Archive of the version that an earlier attempt has stored, in place of that in the request. */
  readonly archive?: Archive
}

/** The objects of one gateway account: the gateway's objects joined with the records of this proxy. */
export interface Store {
  /**
   * Throws NoSuchKey, NoSuchBucket.
   * @param ref one of the versions, here and below, in place of the current one. For one by its id, throws also
   * NoSuchVersion, and MethodNotAllowed for a delete marker
   */
  head(bucket: string, key: string, ref?: VersionRef): Promise<StoredObject>
  /** Like head, but resolves undefined instead of NoSuchKey. */
  find(bucket: string, key: string, ref?: VersionRef): Promise<StoredObject | undefined>
  /** Like find, for a caller who may write the object but need not be able to read it. */
  findToWrite(bucket: string, key: string, ref?: VersionRef): Promise<StoredObject | undefined>
  /** The version with this revision, current or not; undefined when it is gone. */
  findRevision(bucket: string, key: string, revision: string): Promise<StoredObject | undefined>
  /** The versions of a bucket, joined with their records: without headers and metadata that only the gateway has. */
  listVersions(bucket: string, query: VersionQuery): Promise<VersionPage<StoredObject>>
  /**
   * Throws also InvalidRange, InvalidObjectState for a cold object, and InvalidRequest for an object that needs the key
   * of a client. The returned object is the one that the bytes belong to.
   */
  open(
    bucket: string,
    key: string,
    range?: ByteRange,
    customer?: CustomerKey,
    ref?: VersionRef,
  ): Promise<{ object: StoredObject; download: Download }>
  /**
   * Throws InvalidRequest for an object that needs the key of a client, and has none, or the other way round, and
   * AccessDenied if the key is another one.
   */
  requireCustomerKey(object: StoredObject, customer: CustomerKey | undefined): Promise<void>
  /** Opens the bytes as the gateway has them: of an encrypted object, an age file of `storedSize` bytes. */
  openStored(
    bucket: string,
    key: string,
    range?: ByteRange,
    ref?: VersionRef,
  ): Promise<{ object: StoredObject; download: Download }>
  /** Stores verified bytes or nothing. The old object stays until the new one is complete. */
  put(request: PutRequest): Promise<PutResult>
  /**
   * Removes one object and nothing else. In a versioned bucket, adds a delete marker in place of it.
   * @param version removes this version, which the precondition is about; it is no error when there is none. Throws
   * AccessDenied for one that is locked
   */
  remove(
    bucket: string,
    key: string,
    cause: Cause,
    precondition?: Precondition,
    version?: VersionRemoval,
  ): Promise<RemovalResult>
  /**
   * Replaces the object's tags and keeps its bytes; undefined removes the tags. Resolves with the object as it was.
   * Throws NoSuchKey, and AccessDenied for an account that does not own the bucket.
   */
  setTags(
    bucket: string,
    key: string,
    tags: readonly Tag[] | undefined,
    cause: Cause,
    ref?: VersionRef,
    precondition?: Precondition,
  ): Promise<StoredObject>
  /**
   * Replaces the object's ACL and keeps its bytes, if the object still has this revision; undefined removes the ACL.
   * Resolves false when the object is gone or has another revision. Throws AccessDenied for an account that does not
   * own the bucket, unless it was granted as much.
   */
  setAcl(bucket: string, key: string, revision: string, acl: ObjectAcl | undefined): Promise<boolean>
  /**
   * Replaces all metadata of an object and keeps its bytes. Resolves undefined when the object is gone or has another
   * revision. Throws AccessDenied for an account that does not own the bucket.
   */
  replaceMetadata(request: MetadataReplacement): Promise<PutResult | undefined>
  /**
   * Changes the record of an object's copies elsewhere and keeps its bytes, if the object still has this revision.
   * `change` gets the present record and returns the new one; undefined removes it. Resolves false when the object is
   * gone or has another revision. Throws AccessDenied for an account that does not own the bucket.
   */
  annotate(
    bucket: string,
    key: string,
    revision: string,
    change: (archive: Archive | undefined) => Archive | undefined,
  ): Promise<boolean>
  /** The checksums of the parts of an object that was uploaded in parts with checksums. */
  partChecksums(object: StoredObject): Promise<PartChecksums | undefined>
  list(bucket: string, query: ListQuery): Promise<StorePage>
  /** Lists without a delimiter: the objects joined with their records, without what only the gateway keeps. */
  listObjects(bucket: string, query: Omit<ListQuery, 'delimiter'>): Promise<ObjectPage>
  /** Stores an encrypted object again with a header for the keys of today: its content is not decrypted. */
  rewrap(bucket: string, key: string, event: Cause): Promise<Rewrapped>
  /**
   * Whether such a write is encrypted, and the bytes that the gateway gets. Throws S3Error if there is no key for it.
   * @param size bytes of its content, if known
   */
  storedAs(
    write: Pick<PutRequest, 'bucket' | 'key' | 'encryption' | 'uploadId'>,
    size: number | undefined,
  ): Promise<{ readonly encrypted: boolean; readonly storedSize?: number }>
  /** What a new object is encrypted with unless its write says otherwise; undefined for nothing. */
  encryptionFor(bucket: string): Promise<ServerKey | undefined>
  /** Whether a copy of an object onto itself would be encrypted as the object is: by its order, else by the default. */
  keepsEncryption(object: Pick<StoredObject, 'bucket' | 'encrypted'>, asked?: EncryptionOrder): Promise<boolean>
  /** For an upload that begins: undefined if its object is not to be encrypted. Throws S3Error. */
  encryptionOfUpload(
    upload: Pick<UploadRecord, 'bucket' | 'key' | 'uploadId'>,
    asked: EncryptionOrder | undefined,
  ): Promise<UploadEncryption | undefined>
  /** Throws InvalidRequest unless the key of a client is that with which the upload has begun, or neither has one. */
  requireUploadKey(upload: UploadRecord, customer: CustomerKey | undefined): Promise<void>
  /** A part as it is to be staged: encrypted, if the object of the upload is to be. */
  stagedSource(upload: UploadRecord, part: Source): Promise<Source>
  /** Passes the content of a staged part to a sink. */
  readPart(upload: UploadRecord, part: PartRecord, sink: ByteSink): Promise<void>
}
