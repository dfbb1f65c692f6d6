import { createHash } from 'node:crypto'
import type { CID } from 'multiformats/cid'
import {
  type BlockSource,
  digestOf,
  type FileLink,
  MAX_BLOCK_BYTES,
  notRetrievable,
  parseCid,
  RAW,
  readFileNode,
} from './unixfs.js'

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

/** With 1024 links per node, five levels hold more than any disk. */
const MAX_DEPTH = 32

/** The content of a block, or its link where it was not read. */
type FilePart = { readonly content: Uint8Array } | { readonly unread: FileLink }

/**
 * Yields the parts of a file in order. Holds the nodes above the current one, while the memory of ipfs-unixfs-exporter
 * grows with the file.
 * @param read whether to read the block of this link; an unread block is a leaf. The size of the root is unknown: NaN
 */
export async function* walkFile(
  root: CID,
  blocks: BlockSource,
  read: (link: FileLink) => boolean,
): AsyncIterable<FilePart> {
  /** The remaining links of each level, the next one last. */
  const ahead: FileLink[][] = [[{ cid: root, size: Number.NaN }]]
  for (let level = ahead.at(-1); level !== undefined; level = ahead.at(-1)) {
    const link = level.pop()
    if (link === undefined) {
      ahead.pop()
    } else if (!read(link)) {
      yield { unread: link }
    } else {
      const { content, links } = readFileNode(link.cid, await blocks.get(link.cid))
      if (content.length > 0) yield { content }
      if (links.length > 0 && ahead.length === MAX_DEPTH) throw notRetrievable(`The DAG of ${root} is too deep.`)
      if (links.length > 0) ahead.push(links.toReversed())
    }
  }
}

/** The content of a file, whose blocks are read in order. Throws NetworkError NotRetrievable. */
export async function* contentOf(root: CID, blocks: BlockSource): AsyncGenerator<Uint8Array> {
  for await (const part of walkFile(root, blocks, () => true)) if ('content' in part) yield part.content
}
