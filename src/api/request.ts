import type { IncomingHttpHeaders } from 'node:http'
import type { ChecksumAlgorithm } from '../../common/checksums/checksums.js'
import type { Query } from '../../common/query.js'

export type Resource = 'service' | 'bucket' | 'object'

export type Method = 'GET' | 'HEAD' | 'PUT' | 'POST' | 'DELETE' | 'OPTIONS'

/** What only the server can state, of a request that it makes itself. */
export interface OwnTerms {
  /** See PutRequest.writeId: the same whenever a copy is tried again. */
  readonly writeId?: string
  /** A version is removed only while another one is the current one of its key. */
  readonly noncurrent?: true
  /** An object is removed only if it was stored before, ms since 1970. */
  readonly storedBefore?: number
  /** Tags are replaced only while they are these. */
  readonly tags?: readonly { readonly key: string; readonly value: string }[]
}

/** Request line and headers of a request, parsed but not authenticated. */
export interface RequestHead {
  /** Sent back as x-amz-request-id and logged. */
  readonly id: string
  readonly method: Method
  /** The request target exactly as the client sent it (path and query, still encoded). Signatures cover it. */
  readonly target: string
  /** The path part of `target`, still encoded, including any mount prefix. */
  readonly rawPath: string
  /** The query part of `target` without `?`, still encoded. */
  readonly rawQuery: string
  /** The path below the mount prefix, still encoded; starts with `/`. */
  readonly path: string
  readonly query: Query
  /** Lower-case names; Node joins repeated headers. Values are latin-1 strings of the received bytes. */
  readonly headers: IncomingHttpHeaders
  /** Name, value, name, value ... as received, with repeats. */
  readonly rawHeaders: readonly string[]
  /** True if the client uses TLS. */
  readonly secure: boolean
  /** The host and optional port that the client requested; '' without a Host header. */
  readonly host: string
  /** The bucket with virtual-hosted addressing; undefined with path-style addressing. */
  readonly hostBucket: string | undefined
  /** Values of Host that a signature may cover, `host` first. */
  readonly signedHosts: readonly string[]
  readonly remoteAddress: string
  /** Keys of the client for its objects, as read from headers. They are overwritten once nothing needs them. */
  readonly secrets: Buffer[]
  readonly resource: Resource
  /** Decoded. Present unless `resource` is `service`. */
  readonly bucket: string | undefined
  /** Decoded, valid UTF-8, never normalised. Present only if `resource` is `object`. */
  readonly key: string | undefined
  readonly own?: OwnTerms
}

/** A request with verified signature, if it has one, and known operation. Read-only. */
export interface S3Request<R extends Resource = Resource> extends RequestHead {
  readonly resource: R
  readonly bucket: R extends 'service' ? undefined : string
  readonly key: R extends 'object' ? string : undefined
  /** Name of the plugin that provides the operation. */
  readonly plugin: string
  /** Values of `{Name}` segments of the operation's `path`. */
  readonly params: Readonly<Record<string, string>>
  readonly body: RequestBody
  /** Aborts when the client disconnects before the response is complete. */
  readonly signal: AbortSignal
}

/**
 * Receives the next bytes and owns them. A returned promise applies back-pressure: the next chunk follows after it has
 * resolved; a rejection stops the body. May call `release` once it uses the bytes no more, which other bytes replace
 * then.
 */
export type ByteSink = (chunk: Buffer, release?: () => void) => void | Promise<void>

/** Size and digests of a body that has arrived completely and matches every declared digest. */
export interface BodyFacts {
  /** Decoded bytes. */
  readonly size: number
  /** Present if requested with `BodyOptions.md5` or declared in Content-MD5. */
  readonly md5?: Buffer
  /** Base64. The verified checksum that the client declared in a header or trailer, else the requested one. */
  readonly checksum?: { readonly algorithm: ChecksumAlgorithm; readonly value: string }
}

export interface BodyOptions {
  /** Compute the MD5 even if the client declared none. */
  md5?: boolean
  /** Compute this checksum if the client declared none. */
  checksum?: ChecksumAlgorithm
  /** The body is a document and not the bytes of an object; `collect` sets it. */
  document?: boolean
}

/**
 * The body of a request, without aws-chunked framing. `stream` and `collect` resolve only after every declared digest
 * (x-amz-content-sha256, chunk signatures, Content-MD5, x-amz-checksum-* in header or trailer) has been verified. A
 * sink that stores the bytes must hold back the last of them until then (docs/design.md, promise 1). Can be read
 * once.
 */
export interface RequestBody {
  /**
   * Declared length without framing, bytes (x-amz-decoded-content-length or Content-Length; 0 without a body);
   * undefined if the client did not declare it.
   */
  readonly length: number | undefined
  /** Bytes that have been read so far, with aws-chunked framing. */
  readonly received: number
  /** The algorithm of the checksum that the client declared in a header or trailer. */
  readonly declaredChecksum: ChecksumAlgorithm | undefined
  /** The MD5 that the client declared; `stream` compares it. */
  readonly declaredMd5: Buffer | undefined
  /** True if the body is certainly empty: neither Content-Length nor Transfer-Encoding, or length 0. */
  readonly empty: boolean
  /**
   * Passes the decoded bytes to `sink` and resolves when they are complete and verified. Rethrows errors of `sink`.
   * @throws S3Error EntityTooLarge, IncompleteBody, BadDigest, XAmzContentSHA256Mismatch, SignatureDoesNotMatch,
   *   MalformedTrailerError, InvalidRequest, RequestTimeout
   */
  stream(sink: ByteSink, options?: BodyOptions): Promise<BodyFacts>
  /** Returns the complete, verified body. Throws MaxMessageLengthExceeded beyond `maxBytes`, and like `stream`. */
  collect(maxBytes: number, options?: BodyOptions): Promise<{ bytes: Buffer; facts: BodyFacts }>
}

/** Takes the next bytes. They are valid until it calls `done`. Calling `done` with an error stops the body. */
export type LentSink = (chunk: Buffer, done: (error?: unknown) => void) => void

/** Bytes that are passed on without being looked at. */
export interface Transfer {
  /**
   * Takes all bytes, if they are in memory already; undefined for others, which then remain to be lent. Absent where
   * that never is the case.
   */
  whole?(): Buffer | undefined
  /**
   * Like `Download.consume`, but lends the chunks, which costs less. Several chunks may be lent at a time. Resolves
   * when the last chunk has been returned. Rejects also with the error that a chunk was returned with.
   */
  lend(sink: LentSink): Promise<void>
  /** Aborts the transfer. Safe at any time. */
  discard(): void
}

/** Header values are latin-1 strings; undefined values are omitted. */
export type ReplyHeaders = Record<string, string | number | undefined>

/** The reply of an operation. Only `http/send.ts` writes it. */
export interface Reply {
  status: number
  headers: ReplyHeaders
  /** A complete body, an object's bytes from the gateway, or a body that is not ready yet. */
  body?: string | Buffer | RelayBody | LateBody
  /** What the request has changed, for the audit log: names, no secrets. */
  readonly changed?: readonly string[]
  /** The host serves nothing else, so that scripts of the document may run: for websites alone. */
  readonly ownOrigin?: true
  /** What became of each object that the body of the request names, for access logs of the bucket. */
  readonly removals?: readonly LoggedRemoval[]
}

export interface LoggedRemoval {
  readonly key: string
  /** The version that the request states. */
  readonly versionId: string | undefined
  readonly status: number
  /** S3 error code. */
  readonly error: string | undefined
}

/** An object's bytes. If they end early, the client's connection is cut. */
export interface RelayBody {
  readonly download: Transfer
}

/**
 * A document that may take minutes. If it is not ready after some seconds, a 200 and white space keep the connection
 * alive; the document follows, possibly an `<Error>` inside the 200.
 */
export interface LateBody {
  readonly late: Promise<string | LateDocument>
}

export interface LateDocument {
  readonly document: string
  /** Additional headers, sent only if the document is ready before the response begins. */
  readonly headers?: ReplyHeaders
}
