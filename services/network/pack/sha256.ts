import { hash } from 'node:crypto'
import { create, type Digest } from 'multiformats/hashes/digest'

/** Multihash code of SHA-256. */
export const SHA_256 = 0x12

export function sha256(bytes: Uint8Array): Buffer {
  return hash('sha256', bytes, 'buffer')
}

export function digestSha256(bytes: Uint8Array): Digest<typeof SHA_256, number> {
  return create(SHA_256, sha256(bytes))
}
