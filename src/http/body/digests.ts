import { createHash, type Hash } from 'node:crypto'
import {
  type Checksum,
  type ChecksumAlgorithm,
  checksumHeader,
  createChecksum,
  isChecksumValue,
  prepareChecksum,
} from '../../../common/checksums/checksums.js'
import { S3Error } from '../../../common/errors/s3-error.js'
import type { BodyFacts, BodyOptions } from '../../api/request.js'
import type { Trailer } from './aws-chunked.js'
import type { DeclaredDigests } from './declared-digests.js'

/** Computes only the declared and requested digests, and verifies the declared ones at the end. */
export class Digests {
  readonly #declared: DeclaredDigests
  readonly #document: boolean
  readonly #algorithm: ChecksumAlgorithm | undefined
  readonly #sha256: Hash | undefined
  readonly #md5: Hash | undefined
  /** Undefined without a checksum, and for SHA256, which `#sha256` computes. */
  readonly #checksum: Checksum | undefined

  /** @param algorithm of the checksum, prepared */
  private constructor(declared: DeclaredDigests, options: BodyOptions, algorithm: ChecksumAlgorithm | undefined) {
    this.#declared = declared
    this.#document = options.document ?? false
    this.#algorithm = algorithm
    const bySha256 = algorithm === 'SHA256'
    if (declared.sha256 !== undefined || bySha256) this.#sha256 = createHash('sha256')
    if (declared.md5 !== undefined || options.md5) this.#md5 = createHash('md5')
    if (algorithm !== undefined && !bySha256) this.#checksum = createChecksum(algorithm)
  }

  static async of(declared: DeclaredDigests, options: BodyOptions): Promise<Digests> {
    const algorithm = declared.checksum?.algorithm ?? declared.trailer ?? options.checksum
    await prepareChecksum(algorithm)
    return new Digests(declared, options, algorithm)
  }

  update(bytes: Uint8Array): void {
    this.#sha256?.update(bytes)
    this.#md5?.update(bytes)
    this.#checksum?.update(bytes)
  }

  /**
   * @param size total bytes passed to `update`
   * @throws S3Error XAmzContentSHA256Mismatch, BadDigest, MalformedTrailerError, InvalidRequest
   */
  finish(size: number, trailer: Trailer): BodyFacts {
    const sha256 = this.#sha256?.digest()
    this.#compareSha256(sha256)
    const md5 = this.#md5?.digest()
    this.#compareMd5(md5)
    const facts: BodyFacts = { size, ...(md5 && { md5 }) }
    const expected = this.#declared.checksum?.value ?? trailingChecksum(this.#declared.trailer, trailer)
    const algorithm = this.#algorithm
    if (algorithm === undefined) return facts
    const value = this.#checksum?.digest() ?? sha256?.toString('base64') ?? ''
    if (expected !== undefined && expected !== value) {
      throw new S3Error('BadDigest', {
        message: `The ${algorithm} you specified did not match the calculated checksum.`,
      })
    }
    return { ...facts, checksum: { algorithm, value } }
  }

  #compareSha256(actual: Buffer | undefined): void {
    const expected = this.#declared.sha256
    const computed = actual?.toString('hex')
    if (expected === undefined || computed === expected.toLowerCase()) return
    throw new S3Error('XAmzContentSHA256Mismatch', {
      fields: { ClientComputedContentSHA256: expected.slice(0, 200), S3ComputedContentSHA256: computed ?? '' },
    })
  }

  #compareMd5(actual: Buffer | undefined): void {
    const expected = this.#declared.md5
    if (expected === undefined || actual?.equals(expected)) return
    throw new S3Error('BadDigest', {
      message: 'The Content-MD5 you specified did not match what we received.',
      fields: {
        // S3 writes what was sent in hex for the bytes of an object, and in base64 for a document.
        ExpectedDigest: expected.toString(this.#document ? 'base64' : 'hex'),
        CalculatedDigest: actual?.toString('base64') ?? '',
      },
    })
  }
}

/** Returns the checksum in the trailer, which must contain what x-amz-trailer announced and nothing else. */
function trailingChecksum(announced: ChecksumAlgorithm | undefined, trailer: Trailer): string | undefined {
  const name = announced && checksumHeader(announced)
  const stranger = trailer.find(([found]) => found !== name)
  if (stranger !== undefined) {
    throw new S3Error('MalformedTrailerError', {
      fields: { Reason: `The trailer contains ${stranger[0]}, which was not announced.` },
    })
  }
  if (announced === undefined || name === undefined) return undefined
  const value = trailer[0]?.[1]
  if (value === undefined) {
    throw new S3Error('MalformedTrailerError', { fields: { Reason: `${name} was announced and is missing.` } })
  }
  if (!isChecksumValue(announced, value)) {
    throw new S3Error('InvalidRequest', {
      message: `Value for ${name} trailing header is invalid.`,
    })
  }
  return value
}
