import type { FileHandle } from 'node:fs/promises'
import type { CID } from 'multiformats/cid'
import type { ReadFromCar } from '../packing.js'
import { beforeAbort } from './abortable.js'
import type { CarIndex } from './car-index.js'
import { CarIndexes, openCar } from './car-indexes.js'
import { parseSection } from './car-sections.js'
import { parseCid } from './cid-text.js'
import { type BlockSource, digestOf, hashesTo, MAX_BLOCK_BYTES, notRetrievable } from './file-node.js'
import { walkFile } from './file-walk.js'
import { readAt } from './read-at.js'

/** Bytes of indexes that are kept by default: of CARs with a million blocks and more together. */
const DEFAULT_INDEX_BYTES = 64 * 1024 * 1024
/** Head and block are read in one go when they are no longer than this. */
const FIRST_READ_BYTES = 4096
/**
 * Makes a reader. The first read of a CAR goes over the heads of its blocks, one read of the disk for each large block or 64 KiB of small ones; the index made of
 * them takes up to 48 bytes for each different block and is kept for the next read. Beside it a read holds one block and the nodes above it.
 * @param indexBytes bytes of indexes kept together; those that are in use may be more
 */
export function createReadFromCar(indexBytes = DEFAULT_INDEX_BYTES): ReadFromCar {
  const indexes = new CarIndexes(indexBytes)
  return async function* readFromCar(carFile, cid, signal) {
    const root = parseCid(cid)
    signal?.throwIfAborted()
    const handle = await openCar(carFile)
    try {
      const index = await beforeAbort(() => indexes.of(carFile, handle), signal)
      for await (const part of walkFile(root, new CarBlocks(handle, index, signal), () => true)) {
        if ('content' in part) yield part.content
      }
    } finally {
      await handle.close()
    }
  }
}

class CarBlocks implements BlockSource {
  readonly #handle: FileHandle
  readonly #index: CarIndex
  readonly #signal: AbortSignal | undefined

  constructor(handle: FileHandle, index: CarIndex, signal: AbortSignal | undefined) {
    this.#handle = handle
    this.#index = index
    this.#signal = signal
  }

  async get(cid: CID): Promise<Uint8Array> {
    this.#signal?.throwIfAborted()
    const digest = digestOf(cid)
    const offset = this.#index.offsetOf(digest)
    if (offset === undefined) throw notRetrievable(`The block ${cid} is not in the CAR.`)
    const block = await this.#read(offset)
    if (block === undefined || !hashesTo(block, digest)) throw notRetrievable(`The block ${cid} is damaged in the CAR.`)
    return block
  }

  /** The block of the section that lies there; nothing when it is none, or cut. */
  async #read(offset: number): Promise<Uint8Array | undefined> {
    const first = await readAt(this.#handle, offset, FIRST_READ_BYTES)
    const bounds = boundsOf(first, offset)
    if (bounds === undefined || bounds.end - bounds.start > MAX_BLOCK_BYTES) return undefined
    const start = bounds.start - offset
    const end = bounds.end - offset
    if (end <= first.length) return first.subarray(start, end)
    const block = await readAt(this.#handle, bounds.start, end - start)
    return block.length === end - start ? block : undefined
  }
}

function boundsOf(bytes: Uint8Array, offset: number): { readonly start: number; readonly end: number } | undefined {
  try {
    const { blockOffset, end } = parseSection(bytes, offset)
    return { start: blockOffset, end }
  } catch {
    return undefined
  }
}
