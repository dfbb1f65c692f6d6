import { createHash } from 'node:crypto'

/**
 * A second implementation of the piece commitment (sha2-256-trunc254-padded-binary-tree after fr32), for small pieces:
 * the root, in hex.
 */
export function pieceRoot(data: Uint8Array): { readonly root: string; readonly size: number } {
  let size = 128
  while ((size / 128) * 127 < data.length) size *= 2
  let level = spread(data, size)
  while (level.length > 1) {
    level = level.flatMap((left, at) => (at % 2 === 0 ? [above(left, level[at + 1] ?? left)] : []))
  }
  return { root: level[0]?.toString('hex') ?? '', size }
}

/** Leaves of 32 bytes: 254 bits of data each, lowest first, and two of nothing. */
function spread(data: Uint8Array, size: number): Buffer[] {
  const leaves: Buffer[] = []
  for (let leaf = 0; leaf < size / 32; leaf++) {
    const bytes = Buffer.alloc(32)
    for (let bit = 0; bit < 254; bit++) {
      const from = leaf * 254 + bit
      const set = ((data[from >>> 3] ?? 0) >>> (from & 7)) & 1
      bytes[bit >>> 3] = (bytes[bit >>> 3] ?? 0) | (set << (bit & 7))
    }
    leaves.push(bytes)
  }
  return leaves
}

function above(left: Buffer, right: Buffer): Buffer {
  const digest = createHash('sha256').update(left).update(right).digest()
  digest[31] = (digest[31] ?? 0) & 0b00111111
  return digest
}
