import type { FileHandle } from 'node:fs/promises'
import type { CID } from 'multiformats/cid'
import { type BlockSource, digestOf, hashesTo, MAX_BLOCK_BYTES, notRetrievable } from '../dag/file-node.js'
import { readAt } from '../read-at.js'
import type { CarIndex } from './car-index.js'
import { MAX_HEAD_BYTES, parseSection } from './car-sections.js'

/** Head and block are read in one call when they are no longer than this. */
const FIRST_READ_BYTES = 4096

/** The blocks of a CAR. Each is hashed before it is returned. */
export class CarBlocks implements BlockSource {
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

  /**
   * Compares the CID in front of the block, because the index knows only a prefix of the digest.
   * @throws NetworkError NotRetrievable when the block is missing
   */
  async mustHave(cid: CID): Promise<void> {
    const digest = digestOf(cid)
    const offset = this.#index.offsetOf(digest)
    const there =
      offset === undefined ? undefined : digestAt(await readAt(this.#handle, offset, MAX_HEAD_BYTES), offset)
    if (there === undefined || Buffer.compare(there, digest) !== 0)
      throw notRetrievable(`The block ${cid} is not in the CAR.`)
  }

  /** Returns the block of the section at this offset; undefined when the section is invalid or truncated. */
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

function digestAt(bytes: Uint8Array, offset: number): Uint8Array | undefined {
  try {
    return parseSection(bytes, offset).cid.multihash.digest
  } catch {
    return undefined
  }
}
