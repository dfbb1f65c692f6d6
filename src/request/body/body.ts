import type { ChecksumAlgorithm } from '../../common/checksums/checksums.js'

/**
 * Receives the next bytes and owns them. A returned promise applies back-pressure: the next chunk follows after it has
 * resolved; a rejection stops the body.
 */
export type ByteSink = (chunk: Buffer) => void | Promise<void>

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
 * sink that stores the bytes must hold back the last of them until then (DESIGN section 4, promise 1). Can be read
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
