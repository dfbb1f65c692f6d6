import { createHash } from 'node:crypto'
import { crc32 } from 'node:zlib'
import { CrcCombiner } from './crc-combine.js'
import { CRC64NVME_POLYNOMIAL } from './crc64-wasm.js'
import { createCrc64 } from './crc64nvme.js'
import { isXxHashPrepared, prepareXxHash, XxHash } from './xxhash.js'

/**
 * S3's object checksums. Their text form is base64 of the big-endian bytes.
 * https://docs.aws.amazon.com/AmazonS3/latest/userguide/checking-object-integrity.html
 */
export const checksumAlgorithms = [
  ...(['CRC32', 'CRC32C', 'CRC64NVME', 'SHA1', 'SHA256'] as const),
  ...(['SHA512', 'MD5', 'XXHASH64', 'XXHASH3', 'XXHASH128'] as const),
] as const

/** Names of S3's object checksums as in x-amz-checksum-<name>. */
export type ChecksumAlgorithm = (typeof checksumAlgorithms)[number]

/** Size of each checksum before base64, bytes. */
const BYTES: Readonly<Record<ChecksumAlgorithm, number>> = {
  CRC32: 4,
  CRC32C: 4,
  CRC64NVME: 8,
  SHA1: 20,
  SHA256: 32,
  SHA512: 64,
  MD5: 16,
  XXHASH64: 8,
  XXHASH3: 8,
  XXHASH128: 16,
}

/** The algorithm for S3's name of it, in any case; undefined for any other word. */
export function parseChecksumAlgorithm(name: string): ChecksumAlgorithm | undefined {
  const upper = name.toUpperCase()
  return checksumAlgorithms.find((algorithm) => algorithm === upper)
}

/** `x-amz-checksum-crc32` for CRC32, and so on. */
export function checksumHeader(algorithm: ChecksumAlgorithm): string {
  return `x-amz-checksum-${algorithm.toLowerCase()}`
}

/** True when `value` is the canonical base64 of as many bytes as the algorithm has. */
export function isChecksumValue(algorithm: ChecksumAlgorithm, value: string): boolean {
  const bytes = Buffer.from(value, 'base64')
  return bytes.length === BYTES[algorithm] && bytes.toString('base64') === value
}

export interface Checksum {
  update(bytes: Uint8Array): void
  /** Base64. Called once, at the end. */
  digest(): string
}

/** CRC32C in native code, which takes 3 MiB, once `prepareChecksum` has loaded it. */
const native: Partial<Pick<typeof import('@node-rs/crc32'), 'crc32c'>> = {}

/**
 * Must be awaited before `createChecksum`, unless it returns undefined. Few clients use CRC32C, and fewer XXHASH, whose
 * WebAssembly takes 15 ms to compile.
 */
export function prepareChecksum(algorithm: ChecksumAlgorithm | undefined): Promise<void> | undefined {
  if (algorithm === 'CRC32C') return native.crc32c ? undefined : loadCrc32c()
  return algorithm?.startsWith('XXHASH') && !isXxHashPrepared() ? prepareXxHash() : undefined
}

async function loadCrc32c(): Promise<void> {
  native.crc32c = (await import('@node-rs/crc32')).crc32c
}

/** @throws Error if `prepareChecksum` had to be awaited */
export function createChecksum(algorithm: ChecksumAlgorithm): Checksum {
  switch (algorithm) {
    case 'CRC32':
      return new Crc32(crc32)
    case 'CRC32C':
      if (native.crc32c === undefined) throw new Error('prepareChecksum() has not been awaited.')
      return new Crc32(native.crc32c)
    case 'CRC64NVME': {
      const crc = createCrc64()
      return { update: (bytes) => crc.update(bytes), digest: () => crc.digest().toString('base64') }
    }
    case 'SHA1':
    case 'SHA256':
    case 'SHA512':
    case 'MD5': {
      const hash = createHash(algorithm)
      return { update: (bytes) => void hash.update(bytes), digest: () => hash.digest('base64') }
    }
    case 'XXHASH64':
    case 'XXHASH3':
    case 'XXHASH128': {
      const hash = new XxHash(algorithm)
      return { update: (bytes) => hash.update(bytes), digest: () => hash.digest().toString('base64') }
    }
  }
}

class Crc32 implements Checksum {
  readonly #next: (bytes: Uint8Array, value: number) => number
  #value = 0

  constructor(next: (bytes: Uint8Array, value: number) => number) {
    this.#next = next
  }

  update(bytes: Uint8Array): void {
    this.#value = this.#next(bytes, this.#value)
  }

  digest(): string {
    return toBase64(BigInt(this.#value), 4)
  }
}

/** Reflected polynomials: IEEE 802.3, Castagnoli, NVM Express. */
const POLYNOMIALS = { CRC32: 0xedb88320n, CRC32C: 0x82f63b78n, CRC64NVME: CRC64NVME_POLYNOMIAL } as const

/**
 * Checksums of which the value for the whole follows from the values for the parts; the others require all bytes again.
 */
type CombinableChecksum = keyof typeof POLYNOMIALS

export function isCombinable(algorithm: ChecksumAlgorithm): algorithm is CombinableChecksum {
  return algorithm in POLYNOMIALS
}

/**
 * The checksum of concatenated pieces (S3's FULL_OBJECT checksum of a multipart upload), base64.
 * @param parts in order; `size` in bytes, and a `value` that has passed `isChecksumValue`
 */
export function combineChecksums(
  algorithm: CombinableChecksum,
  parts: Iterable<{ readonly value: string; readonly size: number }>,
): string {
  const bytes = BYTES[algorithm]
  const combiner = new CrcCombiner(POLYNOMIALS[algorithm], bytes === 4 ? 32 : 64)
  let crc = 0n
  for (const { value, size } of parts) {
    crc = combiner.combine(crc, BigInt(`0x${Buffer.from(value, 'base64').toString('hex')}`), size)
  }
  return toBase64(crc, bytes)
}

function toBase64(value: bigint, bytes: number): string {
  return Buffer.from(value.toString(16).padStart(bytes * 2, '0'), 'hex').toString('base64')
}
