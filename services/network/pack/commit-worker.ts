import { type FileHandle, open } from 'node:fs/promises'
import { parentPort } from 'node:worker_threads'
import { create } from 'fr32-sha2-256-trunc254-padded-binary-tree-multihash'
import { CID } from 'multiformats/cid'
import { create as createDigest, decode } from 'multiformats/hashes/digest'
import type { Piece } from '../network.js'

/** Entry point of `CommitThread`, which sends the path of one file after another. */
export type FromCommitWorker = { readonly bytes: number } | { readonly piece: Piece }

const READ_BYTES = 1024 * 1024
/**
 * The smallest piece holds 127 bytes of data, expanded to 128. Shorter data is padded with zeros, like any other up to
 * the next power of two.
 */
const MIN_DATA = 127

/** Multicodec `fil-commitment-unsealed`, multihash `sha2-256-trunc254-padded`. */
const UNSEALED = 0xf101
const SHA_256_TRUNCATED_PADDED = 0x1012
const NODE_BYTES = 32

const post = (message: FromCommitWorker): void => parentPort?.postMessage(message)

async function commit(handle: FileHandle): Promise<Piece> {
  const hasher = create()
  try {
    const buffer = new Uint8Array(READ_BYTES)
    let size = 0
    for (;;) {
      const { bytesRead } = await handle.read(buffer, 0, READ_BYTES)
      if (bytesRead === 0) break
      hasher.write(buffer.subarray(0, bytesRead))
      size += bytesRead
      post({ bytes: size })
    }
    if (size < MIN_DATA) hasher.write(new Uint8Array(MIN_DATA - size))
    const multihash = new Uint8Array(hasher.multihashByteLength())
    hasher.digestInto(multihash, 0, true)
    return pieceOf(multihash)
  } finally {
    hasher.free()
  }
}

/** Converts the form of FRC-0069, whose digest ends in the height of the tree and its root, to CID and size. */
function pieceOf(multihash: Uint8Array): Piece {
  const { digest } = decode(multihash)
  const root = digest.subarray(-NODE_BYTES)
  const height = digest.at(-NODE_BYTES - 1)
  if (height === undefined) throw new Error('The digest of the piece is too short.')
  return {
    pieceCid: CID.createV1(UNSEALED, createDigest(SHA_256_TRUNCATED_PADDED, root)).toString(),
    pieceSize: NODE_BYTES * 2 ** height,
  }
}

// An error ends the thread, and its starter gets it whole.
parentPort?.on('message', async (file: string) => {
  const handle = await open(file, 'r')
  try {
    post({ piece: await commit(handle) })
  } finally {
    await handle.close()
  }
})
