import { createHash } from 'node:crypto'
import { parseCid } from './cid-text.js'
import { type BlockSource, digestOf, type FileLink, MAX_BLOCK_BYTES, notRetrievable, RAW } from './file-node.js'
import { walkFile } from './file-walk.js'

/**
 * Passes the bytes of a file on, each after its leaf was found to hash to the CID in the DAG of `cid`. The nodes above
 * the leaves come from `blocks`, one per 1 GiB. Holds one leaf and these nodes. Throws NetworkError NotRetrievable when
 * the bytes differ or their number does, or when the leaves are not raw blocks, which the profile `unixfs-v1-2025`
 * requires.
 */
export async function* verifyLeaves(
  bytes: AsyncIterable<Uint8Array>,
  cid: string,
  blocks: BlockSource,
): AsyncIterable<Uint8Array> {
  const pieces = new Pieces(bytes)
  try {
    for await (const part of walkFile(parseCid(cid), blocks, (link) => link.cid.code !== RAW)) {
      if ('content' in part) throw notRetrievable(`The file ${cid} has content outside of raw blocks.`)
      yield* await leaf(pieces, part.unread)
    }
    if ((await pieces.take(1)).length > 0) throw notRetrievable(`More bytes arrived than the file ${cid} has.`)
  } finally {
    await pieces.close()
  }
}

async function leaf(pieces: Pieces, { cid, size }: FileLink): Promise<Uint8Array[]> {
  if (size > MAX_BLOCK_BYTES) throw notRetrievable(`The block ${cid} is too large.`)
  // A root that is a leaf does not state its size: it is the whole file, and must fit into a block.
  const taken = await pieces.take(Number.isNaN(size) ? MAX_BLOCK_BYTES : size)
  const hash = createHash('sha256')
  for (const piece of taken) hash.update(piece)
  if (!hash.digest().equals(digestOf(cid)))
    throw notRetrievable(`The received bytes are not those of the block ${cid}.`)
  return taken
}

/** Splits a stream on demand. */
class Pieces {
  readonly #source: AsyncIterator<Uint8Array>
  #rest: Uint8Array = new Uint8Array()

  constructor(bytes: AsyncIterable<Uint8Array>) {
    this.#source = bytes[Symbol.asyncIterator]()
  }

  /** Returns the next `count` bytes; fewer only at the end of the stream. */
  async take(count: number): Promise<Uint8Array[]> {
    const taken: Uint8Array[] = []
    for (let missing = count; missing > 0; ) {
      if (this.#rest.length === 0) {
        const next = await this.#source.next()
        if (next.done) return taken
        this.#rest = next.value
        continue
      }
      const piece = this.#rest.subarray(0, missing)
      this.#rest = this.#rest.subarray(piece.length)
      missing -= piece.length
      taken.push(piece)
    }
    return taken
  }

  async close(): Promise<void> {
    await this.#source.return?.()
  }
}
