import type { ChecksumAlgorithm } from '../common/checksums.js'

/**
 * Takes the next bytes. A returned promise is back-pressure: no further chunk comes before it has settled; a rejection stops the body.
 * The chunk belongs to the sink from then on.
 */
export type ByteSink = (chunk: Buffer) => void | Promise<void>

/** What is known of a body once all of it has arrived and every digest somebody declared for it was found right. */
export interface BodyFacts {
  /** Decoded bytes. */
  readonly size: number
  /** Present when asked for with `digests.md5` or checked against Content-MD5. */
  readonly md5?: Buffer
  /** The checksum the client declared in a header or trailer and that was verified, base64; or the one asked for. */
  readonly checksum?: { readonly algorithm: ChecksumAlgorithm; readonly value: string }
}

export interface BodyOptions {
  /** Compute the MD5 even if nobody declared one. */
  md5?: boolean
  /** Compute this checksum if the client declared none. */
  checksum?: ChecksumAlgorithm
}

/**
 * The body of a request: aws-chunked framing removed, every declared digest (x-amz-content-sha256, chunk signatures, Content-MD5, x-amz-checksum-*
 * in header or trailer) verified before `stream` or `collect` resolves. Whoever stores the bytes must hold back the last of them until then
 * (DESIGN section 4, promise 1). May be read once.
 */
export interface RequestBody {
  /** Decoded length in bytes as declared by the client (x-amz-decoded-content-length or Content-Length; 0 if no body was announced); undefined when not declared. */
  readonly length: number | undefined
  /** The checksum algorithm that the client declares for this body in a header or trailer, if any. */
  readonly declaredChecksum: ChecksumAlgorithm | undefined
  /** True when the body can hold no bytes (neither Content-Length nor Transfer-Encoding, or length 0). */
  readonly empty: boolean
  /**
   * Sends the decoded bytes to `sink` and resolves once they are complete and verified.
   * Throws what `sink` throws, or S3Error: EntityTooLarge, IncompleteBody, BadDigest, XAmzContentSHA256Mismatch, SignatureDoesNotMatch, MalformedTrailerError, InvalidRequest, RequestTimeout.
   */
  stream(sink: ByteSink, options?: BodyOptions): Promise<BodyFacts>
  /** The whole body, verified. Throws S3Error MaxMessageLengthExceeded beyond `maxBytes`, else as `stream`. */
  collect(maxBytes: number, options?: BodyOptions): Promise<{ bytes: Buffer; facts: BodyFacts }>
}
