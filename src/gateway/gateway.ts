import type { ByteSink } from '../request/body.js'

/** A bucket as web.ListBuckets tells it. */
export interface GatewayBucket {
  readonly name: string
  /** RFC 3339. Moves with the bucket's content on legacy gateways: see GatewayFeatures.fixedBuckets. */
  readonly creationDate: string
}

/** Standard headers that belong to an object and come back on download. Lower-case names. */
export interface StoredHeaders {
  'cache-control'?: string
  'content-disposition'?: string
  'content-encoding'?: string
  'content-language'?: string
  expires?: string
}

/** What the gateway tells of one object. */
export interface GatewayObject {
  readonly key: string
  /** Bytes. */
  readonly size: number
  /** RFC 3339, as precise as the gateway gives it. */
  readonly lastModified: string
  readonly contentType: string
  /** Another one whenever the object was overwritten: says whether a record in `state/` is about these very bytes. */
  readonly stamp: string
  /** Unquoted; present only when this gateway's ETags can be trusted (MD5 of the body, or what was given on upload). */
  readonly etag?: string
  /** Present only when the gateway told them (on legacy gateways: on download alone). */
  readonly headers?: StoredHeaders
  /** User metadata, lower-case names without prefix; present as `headers` is. */
  readonly metadata?: Readonly<Record<string, string>>
  /** The gateway lists it and holds no copy of its bytes: see `deal-eviction`. */
  readonly cold?: true
}

export type ListEntry =
  | { readonly kind: 'object'; readonly object: GatewayObject }
  | { readonly kind: 'prefix'; readonly prefix: string }

export interface ListQuery {
  readonly prefix: string
  /** '' lists flat. */
  readonly delimiter: string
  /** Entries come strictly after this name in UTF-8 byte order; '' starts at the first. If it is itself a common prefix of this query, everything below it is passed over. */
  readonly after: string
  /** Entries (objects and prefixes together) at most; >= 1. */
  readonly limit: number
}

export interface ListPage {
  /** In UTF-8 byte order of key or prefix, each prefix once. */
  readonly entries: readonly ListEntry[]
  /** True when more follow; continue with `after` = the last entry's name. */
  readonly truncated: boolean
}

/** Part of an object: from `first`, up to and with `last`; or the last `suffix` bytes. */
export type ByteRange = { readonly first: number; readonly last?: number } | { readonly suffix: number }

/** Takes the next bytes until it calls `done`; they change after that. `done` with an error stops the body. */
export type LentSink = (chunk: Buffer, done: (error?: unknown) => void) => void

/** Bytes that are only passed on. */
export interface Transfer {
  /**
   * As `Download.consume`, but the chunks are lent, and cost less. Several may be out at a time. Resolves when the last one has been given back; rejects also
   * with what a chunk was given back with.
   */
  lend(sink: LentSink): Promise<void>
  /** Gives the transfer up. Safe at any time. */
  discard(): void
}

/** An object's bytes on their way: exactly `last - first + 1` of them, whatever the gateway sent. */
export interface Download extends Transfer {
  /** With headers and metadata. */
  readonly object: GatewayObject
  /** First and last byte position; last is first - 1 for an empty object. */
  readonly first: number
  readonly last: number
  /** Delivers the bytes once. Rejects (S3Error) when the gateway ends early or stalls; some bytes may have gone to the sink by then. */
  consume(sink: ByteSink): Promise<void>
}

export interface UploadAttributes {
  readonly contentType: string | undefined
  readonly headers: StoredHeaders
  readonly metadata: Readonly<Record<string, string>>
  /** ETag of record when it is not the MD5 of the body (multipart); a gateway that can keep it will. */
  readonly etag?: string
}

export interface UploadResult {
  readonly stamp: string
  readonly lastModified: string
  /** As GatewayObject.etag. */
  readonly etag?: string
}

/** An upload of known length under way. The gateway keeps the old object until `commit` has resolved, or for ever after `abort`. */
export interface Upload {
  /** Sends bytes; a promise is back-pressure. Rejects (S3Error) when the gateway has refused or gone. */
  write(chunk: Buffer): void | Promise<void>
  /** To be called after the last byte was written: resolves when the gateway has the object. Throws S3Error. */
  commit(): Promise<UploadResult>
  /** Ends the connection short of its Content-Length. Safe at any time before `commit` resolves. */
  abort(): void
}

/** What a gateway can do beyond the specification, from web.ServerInfo; all false for a legacy one. */
export interface GatewayFeatures {
  /** web.ListObjects takes marker, maxKeys and delimiter, answers sorted pages and gives etag and generation per object. */
  readonly pagedListing: boolean
  /** HEAD on download; upload and download tell ETag, generation, headers and metadata; Range is honoured. */
  readonly objectHead: boolean
  /** web.RemoveObject removes exactly the named keys, also ones that end in `/`. */
  readonly exactRemove: boolean
  /** Any UTF-8 key up to 1024 bytes can be stored. */
  readonly anyKey: boolean
  /** web.ListBuckets tells when a bucket was made, to the nanosecond in UTC, and goes on telling that whatever becomes of what is in it. */
  readonly fixedBuckets: boolean
  /** Making a deal takes a client token, by which a repeated request is known, also when its object has gone since; its progress can be asked for. */
  readonly dealTokens: boolean
  /** The state of a deal can be asked for. */
  readonly dealStatus: boolean
  /** The storage providers can be asked for. */
  readonly dealProviders: boolean
  /**
   * The local copy of an object with a deal can be given up, once a retrieval has been compared with it. `retrieve` brings it back, unless the header `history-only` is
   * sent.
   */
  readonly dealEviction: boolean
}

/** A call of one of the gateway's REST paths that answer JSON: `/<word>/<endpoint>[/<bucket>[/<key>]]`. */
export interface GatewayCall {
  readonly method: 'GET' | 'POST'
  /** `deal`, `bucket/retrieve`, `dealstatus`. Sent as it is. */
  readonly endpoint: string
  readonly bucket?: string
  readonly key?: string
  /** The key goes in one path segment, its slashes encoded: `retrieve` of public gateways takes no more (filswan/fs3 cmd/web-router.go). Default false. */
  readonly keyInOneSegment?: boolean
  /** A last path segment of a call that is about no bucket, such as the CID of a deal. */
  readonly id?: string
  /** Sent as JSON. */
  readonly body?: Readonly<Record<string, string>>
  /** Neutral names without the brand's word: `{ 'client-token': 'x' }` is sent as x-cloud-client-token. */
  readonly headers?: Readonly<Record<string, string>>
  /** What the caller needs a right to. */
  readonly access: 'read' | 'write'
  /** Until the whole answer is there, ms; default as for every call. */
  readonly timeoutMs?: number
  readonly signal?: AbortSignal
}

/** Whatever the gateway answered, also a failure. */
export interface GatewayAnswer {
  readonly status: number
  /** undefined when the body is not JSON. */
  readonly json: unknown
  /** At most 8 MiB. */
  readonly text: string
}

/** What everybody may do with a bucket's objects, log-in or not. */
export type PublicPolicy = 'readonly' | 'writeonly' | 'readwrite'

/** One rule of a bucket's policy. */
export interface PolicyEntry {
  /** Of keys; '' is all of them. */
  readonly prefix: string
  readonly policy: PublicPolicy
}

/** The object gateway as one account sees it. All methods throw S3Error (see gateway/errors.ts) and log in by themselves. */
export interface Gateway {
  features(): Promise<GatewayFeatures>
  listBuckets(): Promise<GatewayBucket[]>
  bucketExists(bucket: string): Promise<boolean>
  makeBucket(bucket: string): Promise<void>
  deleteBucket(bucket: string): Promise<void>
  list(bucket: string, query: ListQuery): Promise<ListPage>
  /** Undefined when there is no such object; throws NoSuchBucket. Cheap on full gateways; on legacy ones a listing of the parent. */
  stat(bucket: string, key: string): Promise<GatewayObject | undefined>
  /** Throws NoSuchKey, NoSuchBucket, InvalidRange (with the object's size in fields.ActualObjectSize). Range answers are exact whether or not the gateway honours Range. */
  download(bucket: string, key: string, range?: ByteRange): Promise<Download>
  /** Why this gateway cannot hold this key, in words for the client; undefined when it can. */
  refusesKey(key: string): Promise<string | undefined>
  /** `length` in bytes, exact. Nothing is sent before the first `write` or `commit`. */
  upload(bucket: string, key: string, length: number, attributes: UploadAttributes): Upload
  /** Removes one object; nothing else, whatever the key looks like. Removing what is not there is no error. */
  remove(bucket: string, key: string): Promise<void>
  /** What everybody may do in the bucket, in UTF-8 byte order of the prefix. Throws NoSuchBucket. */
  listPolicies(bucket: string): Promise<PolicyEntry[]>
  /** Puts a rule for this prefix in the place of the one there is; `none` takes it away. Rules for other prefixes stay. */
  setPolicy(bucket: string, prefix: string, policy: PublicPolicy | 'none'): Promise<void>
  /**
   * A link to read the object by, signed by the gateway, without its scheme: `host` and what follows. Throws InvalidRequest for a key that the gateway's links
   * cannot name; whether there is such an object is not looked at.
   * @param expirySeconds 1 to 604,800
   * @param host as the one who follows the link will send it
   */
  presignedGet(bucket: string, key: string, expirySeconds: number, host: string): Promise<string>
  /**
   * Throws S3Error when nothing was done because the gateway could not be reached or asked (for a GET also when the answer got lost), and OutcomeUnknown
   * when a POST was sent and its answer got lost.
   */
  call(call: GatewayCall): Promise<GatewayAnswer>
  /** True when the gateway answers and accepts our log-in. */
  ready(): Promise<void>
}
