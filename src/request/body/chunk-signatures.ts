import { createHash, type Hash, hash } from 'node:crypto'
import type { ChunkSigning } from '../../auth/caller.js'
import { S3Error } from '../../common/errors/s3-error.js'
import { EMPTY_SHA256, signature, timingSafeEqualHex } from '../../common/sigv4.js'

/**
 * Verifies the signatures of an aws-chunked body. Each signature covers the previous one.
 * https://docs.aws.amazon.com/AmazonS3/latest/API/sigv4-streaming.html
 * https://docs.aws.amazon.com/AmazonS3/latest/API/sigv4-streaming-trailers.html
 */
export class ChunkSignatures {
  readonly #signing: ChunkSigning
  #previous: string
  #hash: Hash | undefined
  #chunk = 1

  constructor(signing: ChunkSigning) {
    this.#signing = signing
    this.#previous = signing.seedSignature
  }

  /** Adds the next bytes of the current chunk. */
  update(bytes: Uint8Array): void {
    this.#hash ??= createHash('sha256')
    this.#hash.update(bytes)
  }

  /** @throws S3Error SignatureDoesNotMatch unless `claimed` is the signature of the chunk that ends here */
  endChunk(claimed: string): void {
    const digest = this.#hash?.digest('hex') ?? EMPTY_SHA256
    this.#hash = undefined
    this.#verify(`${this.#preamble('PAYLOAD')}\n${EMPTY_SHA256}\n${digest}`, claimed, `chunk ${this.#chunk++}`)
  }

  /** @param canonical the trailer as `name:value` lines, each ended by a line feed */
  endTrailer(canonical: string, claimed: string): void {
    const digest = hash('sha256', Buffer.from(canonical, 'latin1'), 'hex')
    this.#verify(`${this.#preamble('TRAILER')}\n${digest}`, claimed, 'the trailer')
  }

  #preamble(kind: 'PAYLOAD' | 'TRAILER'): string {
    const { date, scope } = this.#signing
    return `AWS4-HMAC-SHA256-${kind}\n${date}\n${scope}\n${this.#previous}`
  }

  #verify(toSign: string, claimed: string, what: string): void {
    if (!timingSafeEqualHex(signature(this.#signing.key, toSign), claimed)) {
      throw new S3Error('SignatureDoesNotMatch', {
        message: `The signature of ${what} does not match its bytes.`,
        fields: { StringToSign: toSign, SignatureProvided: claimed },
      })
    }
    this.#previous = claimed
  }
}
