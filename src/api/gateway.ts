import type { S3Error } from '../../common/errors/s3-error.js'
import type { Logging } from '../../common/log.js'
import type { Encrypted } from './encryption.js'
import type { GatewayAnswer, GatewayCall } from './gateway-call.js'
import type { GatewayFeatures } from './gateway-features.js'
import type { Known } from './known-object.js'
import type { ObjectChecksum } from './object-checksum.js'
import type { ByteSink, Transfer } from './request.js'
import type { GatewayVersions, ObjectLock, RemovalResult, VersionRef, VersionRemoval } from './versions.js'

/** A bucket as web.ListBuckets describes it. */
export interface GatewayBucket {
  readonly name: string
  /** RFC 3339. On legacy gateways it changes with the bucket's content: see GatewayFeatures.fixedBuckets. */
  readonly creationDate: string
}

/** Standard headers that are stored with an object and returned on download. Lower-case names. */
export interface StoredHeaders {
  'cache-control'?: string
  'content-disposition'?: string
  'content-encoding'?: string
  'content-language'?: string
  expires?: string
  /** Kept in records alone: no gateway has a place for it. */
  'x-amz-website-redirect-location'?: string
}

/** An object as the gateway describes it. */
export interface GatewayObject {
  readonly key: string
  /** Bytes. */
  readonly size: number
  /** RFC 3339, as precise as the gateway states it. */
  readonly lastModified: string
  readonly contentType: string
  /** Changes with every overwrite. Tells whether a record in `state/` describes these bytes. */
  readonly revision: string
  /** Unquoted. Present only when this gateway's ETags can be trusted: MD5 of the body, or the value given on upload. */
  readonly etag?: string
  /** Present only when the gateway sent them; legacy gateways send them on download only. */
  readonly headers?: StoredHeaders
  /** User metadata: lower-case names without prefix. Present when `headers` is. */
  readonly metadata?: Readonly<Record<string, string>>
  /** Of the whole body, as its writer has stated it: see GatewayFeatures.objectChecksums. */
  readonly checksum?: ObjectChecksum
  /** The gateway lists the object but holds no copy of its bytes: see `deal-eviction`. */
  readonly cold?: true
  /** Listings show it where `etag` is that of the upload. */
  readonly encrypted?: Encrypted
  /** Identifies the write that created the object, if this server sent it. Present only when the gateway sent it. */
  readonly writeId?: string
  /** Fence of the last write to the key. Present only when the gateway sent it: see GatewayFeatures.objectRecords. */
  readonly fence?: number
  /** What this server keeps with the object at the gateway, if anything. Present only with `fence`. */
  readonly record?: string
  /** `null` for the version without an id. Absent in a bucket never versioned, and in listings of objects. */
  readonly versionId?: string
  readonly lock?: ObjectLock
}

export type ListEntry =
  | { readonly kind: 'object'; readonly object: GatewayObject }
  | { readonly kind: 'prefix'; readonly prefix: string }

export interface ListQuery {
  readonly prefix: string
  /** '' lists without delimiter. */
  readonly delimiter: string
  /**
   * Entries come strictly after this name in UTF-8 byte order; '' starts at the first. If it is itself a common prefix
   * of this query, everything below it is skipped.
   */
  readonly after: string
  /** Most entries, objects and prefixes together; at least 1. */
  readonly limit: number
}

export interface ListPage {
  /** In UTF-8 byte order of key or prefix. Each prefix appears once. */
  readonly entries: readonly ListEntry[]
  /** True when more entries follow. Continue with `after` set to the name of the last entry. */
  readonly truncated: boolean
  /** The bucket is or was versioned. */
  readonly versioned?: true
}

/** A part of an object: from `first` to `last`, both inclusive; or the last `suffix` bytes. */
export type ByteRange = { readonly first: number; readonly last?: number } | { readonly suffix: number }

/** The bytes of an object in transfer: exactly `last - first + 1` bytes, whatever the gateway sent. */
export interface Download extends Transfer {
  /** Has headers and metadata. */
  readonly object: GatewayObject
  /** Position of the first byte. `last`, the position of the last, is `first - 1` for an empty object. */
  readonly first: number
  readonly last: number
  /**
   * Delivers the bytes once. Rejects with S3Error when the gateway ends early or stalls; the sink may have received
   * some bytes by then.
   */
  consume(sink: ByteSink): Promise<void>
}

export interface UploadAttributes {
  readonly contentType: string | undefined
  readonly headers: StoredHeaders
  readonly metadata: Readonly<Record<string, string>>
  /**
   * The ETag to keep with the object, if it is known before the gateway has the body. Gateways that can store it do.
   * Called when the headers are sent, as `record` is.
   */
  readonly etag?: () => string | undefined
  /** Of all bytes of the body, to be kept with the object where the gateway can. Called when the headers are sent. */
  readonly checksum?: () => ObjectChecksum | undefined
  readonly encrypted?: Encrypted
  /** Identifies this write and every repetition of it with the same content. Default: a new random id. */
  readonly writeId?: string
  /** What to keep with the object: see KeptRecord. Called when the headers are sent: after a small body. */
  readonly record?: () => string | undefined
  /** Needs GatewayFeatures.locks: an upload with a lock throws NotImplemented on others. */
  readonly lock?: ObjectLock | undefined
}

/** A record to keep with an object in place of that of its upload. */
export interface KeptRecord {
  /** Revision of the object. */
  readonly revision: string
  /** Visible ASCII, at most 8 KiB; '' removes the record. */
  readonly record: string
  /** Fence of the lock that the change holds: it counts as a write to the key. */
  readonly fence: number
}

export interface UploadResult {
  /** `unconfirmedRevision` of the write while the gateway has acknowledged the upload without telling the revision. */
  readonly revision: string
  readonly lastModified: string
  /**
   * Present with an unconfirmed revision. Resolves to the result with the real revision, or undefined when the object
   * has been replaced by then. Never rejects.
   */
  readonly confirmed?: Promise<UploadResult | undefined>
  /** Why the revision is unconfirmed. */
  readonly problem?: unknown
  /** See GatewayObject.etag. */
  readonly etag?: string
  /** What the gateway keeps with the object. */
  readonly checksum?: ObjectChecksum
  /** See GatewayObject.versionId. */
  readonly versionId?: string
  /** See ObjectRecord.mark. */
  readonly mark?: string
}

/**
 * An upload of known length in progress. The gateway keeps the old object until `commit` has resolved, and after
 * `abort`.
 */
export interface Upload {
  /**
   * Sends bytes. A returned promise is back-pressure. Rejects with S3Error when the gateway refused the upload or
   * closed the connection.
   * @param release called once the bytes have left, or not at all
   */
  write(chunk: Buffer, release?: () => void): void | Promise<void>
  /**
   * Completes the upload after the last byte was written. Resolves when the gateway holds the object. Throws S3Error,
   * including InDoubt, and WriteRefused: where that is repeatable, `commit` may be called again with another order.
   */
  commit(order: WriteOrder): Promise<UploadResult>
  /** True while the gateway certainly has not all bytes: nothing was stored, also after a failed `commit`. */
  readonly unsent: boolean
  /** Closes the connection short of its Content-Length. Safe at any time. */
  abort(): void
}

/** The place of a write among all writes to its key: see docs/consistency.md. */
export interface WriteOrder {
  /** Fence of the lock that the write holds. */
  readonly fence: number
  /**
   * Revision of the object to replace or remove; null when there must be none; absent for any. Only gateways with
   * writeFences check it.
   */
  readonly expected?: string | null
  /** Called right before the last bytes are sent. Throws S3Error when the write must not happen any more. */
  ensure(): void
  /** Logs the lines about the write. */
  readonly logger?: Logging | undefined
}

/** What a bucket may have, null for no bound, and what it has, with all versions and delete markers. */
export interface BucketStanding {
  readonly quota: { readonly bytes: number | null; readonly objects: number | null }
  readonly usage: { readonly bytes: number; readonly objects: number }
}

/** A bucket as its gateway has counted it: bytes wherever they are, but for those of its BucketStanding. */
export interface BucketNumbers extends BucketStanding {
  readonly name: string
  /** Absent: it was never enabled. */
  readonly versioning?: 'Enabled' | 'Suspended'
  /** It was made with object lock. */
  readonly locks: boolean
  readonly current: BucketStanding['usage']
  /** Versions that are not current, without delete markers. */
  readonly noncurrent: BucketStanding['usage']
  /** Delete markers. */
  readonly markers: number
}

/** Access to the objects of a bucket that the gateway grants to every caller, with or without a log-in. */
export type PublicPolicy = 'readonly' | 'writeonly' | 'readwrite'

/** One rule of a bucket's policy. */
export interface PolicyEntry {
  /** Prefix of keys; '' covers all. */
  readonly prefix: string
  readonly policy: PublicPolicy
}

/** Access without a log-in that a rule grants which Gateway.listPolicies does not list. */
export interface HiddenAccess {
  /**
   * Prefix of keys; '' is the whole bucket. The rule may cover more or less than this prefix, at which it was found.
   */
  readonly prefix: string
  /**
   * `get` reads objects; `list` lists the prefix or writes below it, which the gateway's answer does not distinguish.
   */
  readonly action: 'get' | 'list'
}

/**
 * The object gateway as one account sees it. All methods throw S3Error (see gateway/errors.ts) and log in on demand.
 */
export interface Gateway extends GatewayVersions<GatewayObject> {
  features(): Promise<GatewayFeatures>
  listBuckets(): Promise<GatewayBucket[]>
  bucketExists(bucket: string): Promise<boolean>
  /** @param options `lock`: with versioning and object lock, on a gateway with GatewayFeatures.locks */
  makeBucket(bucket: string, options?: { readonly lock?: boolean }): Promise<void>
  deleteBucket(bucket: string): Promise<void>
  list(bucket: string, query: ListQuery): Promise<ListPage>
  /**
   * Resolves undefined when there is no such object. Throws NoSuchBucket. Cheap on full gateways; lists the parent on
   * legacy ones.
   * @param ref one of the versions, in place of the current one. For one by its id, throws NoSuchVersion, and
   * MethodNotAllowed for a delete marker
   * @param onMarker gets the NoSuchKey that tells clients of the delete marker, where the current version is one
   * @param known saves a legacy gateway the listing where the gateway still has these bytes
   */
  stat(
    bucket: string,
    key: string,
    ref?: VersionRef,
    onMarker?: (error: S3Error) => void,
    known?: Known,
  ): Promise<GatewayObject | undefined>
  /**
   * Throws NoSuchKey, NoSuchBucket, InvalidRange (with the size of the object in fields.ActualObjectSize). Ranges are
   * exact whether or not the gateway honours Range.
   * @param ref as of `stat`; for one by its revision, throws NoSuchVersion
   * @param known as of `stat`
   */
  download(bucket: string, key: string, range?: ByteRange, ref?: VersionRef, known?: Known): Promise<Download>
  /** The reason why this gateway cannot store this key, as a message for the client. Undefined when it can. */
  refusesKey(key: string): Promise<string | undefined>
  /** How many multipart uploads the account may have under way; undefined for no bound. Throws S3Error. */
  uploadQuota(): Promise<number | undefined>
  /** Throws NotImplemented without GatewayFeatures.bucketQuotas, and AccessDenied unless for its owner. */
  bucketQuota(bucket: string): Promise<BucketStanding>
  /** Changes the bounds that are present; null ends one. Throws as `bucketQuota` does. */
  setBucketQuota(bucket: string, change: Partial<BucketStanding['quota']>): Promise<BucketStanding>
  /**
   * Those of the named buckets that the account owns; at most 1,000 names. Throws NotImplemented without
   * GatewayFeatures.bucketNumbers.
   */
  bucketNumbers(buckets: readonly string[]): Promise<readonly BucketNumbers[]>
  /** @param length bytes, exact. Nothing is sent before the first `write` or `commit`. */
  upload(bucket: string, key: string, length: number, attributes: UploadAttributes): Upload
  /**
   * Removes this object and nothing else, whatever its key looks like. A missing object is no error. Throws also
   * WriteRefused and InDoubt. In a versioned bucket, adds a delete marker in its place, also where none is.
   * @param version removes this version, if it is there. Throws AccessDenied for one that is locked
   */
  remove(bucket: string, key: string, order: WriteOrder, version?: VersionRemoval): Promise<RemovalResult>
  /**
   * Replaces the record of an object. Needs objectRecords. Throws also WriteRefused: the object is another one by now,
   * or a later write stands.
   */
  keepRecord(bucket: string, key: string, record: KeptRecord): Promise<void>
  /** Lists the policies of a bucket for all callers, in UTF-8 byte order of the prefix. Throws NoSuchBucket. */
  listPolicies(bucket: string): Promise<PolicyEntry[]>
  /**
   * Replaces the rule for this prefix; `none` removes it. Rules for other prefixes stay. A gateway may report success
   * and keep the rule.
   */
  setPolicy(bucket: string, prefix: string, policy: PublicPolicy | 'none'): Promise<void>
  /**
   * Finds access that the gateway grants to everyone beyond `entries`, the answer of listPolicies: gateways can hold
   * rules that they do not list, such as an S3 rule for GetObject alone. Tries requests without a log-in at the root
   * and in the first folders there (20 at most), or at `places`. Does not find rules further down. Throws S3Error when
   * the answers are inconclusive.
   * @param places prefixes to try; '' is the root
   */
  hiddenAccess(bucket: string, entries: readonly PolicyEntry[], places?: readonly string[]): Promise<HiddenAccess[]>
  /**
   * A link to read the object, signed by the gateway, without its scheme: `host` and the path. Throws InvalidRequest
   * for a key that the gateway's links cannot name. Does not check whether the object exists.
   * @param expirySeconds 1 to 604,800
   * @param host as the client that follows the link will send it
   */
  presignedGet(bucket: string, key: string, expirySeconds: number, host: string): Promise<string>
  /**
   * Throws S3Error when nothing happened because the gateway could not be reached or refused the session (for a GET
   * also when the answer was lost), and OutcomeUnknown when a POST was sent and its answer was lost. The answer to a
   * POST may come from an intermediate proxy that has forwarded the POST: only `GatewayAnswer.refusal` says that the
   * gateway itself refused it.
   */
  call(call: GatewayCall): Promise<GatewayAnswer>
  /**
   * Resolves when the gateway accepts the log-in, describes itself and lists buckets, with the reason why some requests
   * are refused all the same. Throws S3Error.
   */
  ready(): Promise<string | undefined>
}

/**
 * The times at which buckets were made, as the gateway states them. They distinguish a bucket from an earlier one of
 * the same name that another client of the gateway has deleted.
 */
export interface CreationTimes {
  /**
   * Asks the gateway. Resolves undefined where it cannot tell: on a gateway whose dates change
   * (GatewayFeatures.fixedBuckets), for a missing bucket, for a bucket that this server's account may not see, and when
   * the gateway refuses that account. Later times compare greater as text. Throws S3Error.
   */
  now(bucket: string): Promise<string | undefined>
  /**
   * An answer at most a minute old. Rarely asks the gateway and never waits long. Never rejects: resolves undefined
   * also when the gateway could not be asked.
   */
  cached(bucket: string): Promise<string | undefined>
}
