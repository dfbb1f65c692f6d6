import type { IncomingMessage } from 'node:http'
import type { ReadWholeBody } from '../../auth/caller.js'
import type { ChecksumAlgorithm } from '../../common/checksums/checksums.js'
import { S3Error, slowDown } from '../../common/errors/s3-error.js'
import { Quota, type QuotaBounds } from '../../common/quota.js'
import type { RequestHead } from '../s3-request.js'
import type { Patience } from './body-source.js'
import { wireLength } from './declared-digests.js'
import { type BeforeBody, openIncoming } from './open-body.js'

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

/** Limits the request bodies that are read at the same time, in total and per client. */
export class Bodies {
  readonly #quota: Quota

  constructor(bounds: QuotaBounds) {
    this.#quota = new Quota(bounds)
  }

  /** Bodies that are being read. */
  get held(): number {
    return this.#quota.held
  }

  /**
   * Takes a slot for a body.
   * @param client see `clientOf`
   * @returns an idempotent function that releases the slot
   * @throws S3Error SlowDown
   */
  enter(client: string): () => void {
    if (!this.#quota.take(client, 1)) {
      throw slowDown(
        'The server is reading too many request bodies of this client or of all clients: send fewer at the same time.',
      )
    }
    let inside = true
    return () => {
      if (inside) this.#quota.give(client, 1)
      inside = false
    }
  }
}

const MiB = 1024 * 1024

interface ReadWholeOptions {
  readonly patience: Patience
  /** Largest body, bytes; default 1 MiB. */
  readonly maxBytes?: number
  readonly beforeBody?: BeforeBody
}

/**
 * Returns a function that reads a complete body, for a signature that covers an undeclared hash. The bytes are not
 * authenticated: only the authenticator may use them.
 */
export function readWhole(incoming: IncomingMessage, head: RequestHead, options: ReadWholeOptions): ReadWholeBody {
  const { patience, maxBytes = MiB, beforeBody } = options
  const check = (size: number): void => {
    if (size <= maxBytes) return
    throw new S3Error('MissingSecurityHeader', {
      message: `A signed request with a body of more than ${maxBytes} bytes requires x-amz-content-sha256: the hash of the body, or UNSIGNED-PAYLOAD.`,
      fields: { MissingHeaderName: 'x-amz-content-sha256' },
    })
  }
  return async () => {
    check(wireLength(head.headers) ?? 0)
    const source = openIncoming(incoming, patience, beforeBody)
    try {
      const pieces: Buffer[] = []
      let size = 0
      for (let bytes = await source.next(); bytes !== undefined; bytes = await source.next()) {
        size += bytes.length
        check(size)
        pieces.push(bytes)
      }
      return Buffer.concat(pieces, size)
    } finally {
      source.close()
    }
  }
}
