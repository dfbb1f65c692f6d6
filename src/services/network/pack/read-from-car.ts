import type { FileHandle } from 'node:fs/promises'
import { decode as decodeNode } from '@ipld/dag-pb'
import { UnixFS } from 'ipfs-unixfs'
import type { CID } from 'multiformats/cid'
import { NetworkError } from '../network.js'
import type { ReadFromCar } from '../packing.js'
import { beforeAbort } from './abortable.js'
import type { CarIndex } from './car-index.js'
import { CarIndexes, openCar } from './car-indexes.js'
import { parseSection } from './car-sections.js'
import { parseCid } from './cid-text.js'
import { readAt } from './read-at.js'
import { SHA_256, sha256 } from './sha256.js'

/** Bytes of indexes that are kept by default: of CARs with a million blocks and more together. */
const DEFAULT_INDEX_BYTES = 64 * 1024 * 1024
/** What other nodes of the network exchange at most in one block; ours have little more than 1 MiB. */
const MAX_BLOCK_BYTES = 2 * 1024 * 1024
/** Head and block are read in one go when they are no longer than this. */
const FIRST_READ_BYTES = 4096
/** With 1024 links to a node, five levels hold more than any disk. */
const MAX_DEPTH = 32
/** Multicodecs. */
const RAW = 0x55
const DAG_PB = 0x70

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
      yield* walk(root, new Blocks(handle, index), signal)
    } finally {
      await handle.close()
    }
  }
}

class Blocks {
  readonly #handle: FileHandle
  readonly #index: CarIndex

  constructor(handle: FileHandle, index: CarIndex) {
    this.#handle = handle
    this.#index = index
  }

  /** Only what hashes to the CID. */
  async get(cid: CID): Promise<Uint8Array> {
    const { code, digest } = cid.multihash
    if (code !== SHA_256) throw notRetrievable(`The block ${cid} has a digest other than SHA-256.`)
    const offset = this.#index.offsetOf(digest)
    if (offset === undefined) throw notRetrievable(`The block ${cid} is not in the CAR.`)
    const block = await this.#read(offset)
    if (block === undefined || !sha256(block).equals(digest)) {
      throw notRetrievable(`The block ${cid} is damaged in the CAR.`)
    }
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

async function* walk(root: CID, blocks: Blocks, signal: AbortSignal | undefined): AsyncIterable<Uint8Array> {
  /** For each level what is still to come, the next one last. */
  const ahead: CID[][] = [[root]]
  while (ahead.length > 0) {
    const cid = ahead.at(-1)?.pop()
    if (cid === undefined) {
      ahead.pop()
      continue
    }
    signal?.throwIfAborted()
    const { content, links } = readNode(cid, await blocks.get(cid))
    if (content.length > 0) yield content
    if (links.length === 0) continue
    if (ahead.length === MAX_DEPTH) throw notRetrievable(`The DAG of ${root} is too deep.`)
    ahead.push(links.reverse())
  }
}

function readNode(cid: CID, block: Uint8Array): { readonly content: Uint8Array; readonly links: CID[] } {
  if (cid.code === RAW) return { content: block, links: [] }
  if (cid.code !== DAG_PB) throw notRetrievable(`The block ${cid} is no part of a file.`)
  try {
    const node = decodeNode(block)
    const { type, data } = UnixFS.unmarshal(node.Data ?? new Uint8Array())
    if (type !== 'file' && type !== 'raw') throw new TypeError(`It is of the type ${type}.`)
    return { content: data ?? new Uint8Array(), links: node.Links.map(({ Hash }) => Hash) }
  } catch (cause) {
    throw notRetrievable(`The block ${cid} is no part of a file.`, { cause })
  }
}

const notRetrievable = (message: string, options?: ErrorOptions): NetworkError =>
  new NetworkError('NotRetrievable', message, options)
