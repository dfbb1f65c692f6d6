import { type FileHandle, open } from 'node:fs/promises'
import type { CID } from 'multiformats/cid'
import { NetworkError } from '../../network.js'
import { type BlockSource, digestOf, hashesTo, MAX_BLOCK_BYTES, notRetrievable } from '../dag/unixfs.js'
import { MAX_HEAD_BYTES, parseSection, readAt, sectionsOf } from './car-sections.js'

interface CachedIndex {
  /** Identity of the indexed file: a replaced or longer file is indexed again. */
  readonly identity: string
  readonly index: Promise<CarIndex>
  bytes: number
}

/**
 * A cache of indexes of CARs. Concurrent requests share the making of an index; the least recently used ones are
 * evicted beyond a number of bytes.
 */
export class CarIndexes {
  readonly #maxBytes: number
  readonly #kept = new Map<string, CachedIndex>()

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes
  }

  /** @throws NetworkError NotRetrievable */
  async of(file: string, handle: FileHandle): Promise<CarIndex> {
    const { dev, ino, size, mtimeNs } = await handle.stat({ bigint: true })
    const identity = [dev, ino, size, mtimeNs].join()
    const found = this.#kept.get(file)
    const kept = found?.identity === identity ? found : this.#make(file, identity)
    this.#kept.delete(file)
    this.#kept.set(file, kept)
    return kept.index
  }

  #make(file: string, identity: string): CachedIndex {
    const kept: CachedIndex = { identity, index: scan(file), bytes: 0 }
    kept.index.then(
      ({ bytes }) => {
        kept.bytes = bytes
        this.#trim()
      },
      () => {
        if (this.#kept.get(file) === kept) this.#kept.delete(file)
      },
    )
    return kept
  }

  #trim(): void {
    let total = 0
    for (const { bytes } of this.#kept.values()) total += bytes
    for (const [file, { bytes }] of this.#kept) {
      if (total <= this.#maxBytes) return
      this.#kept.delete(file)
      total -= bytes
    }
  }
}

/** Uses its own handle, because the first caller may leave before the scan ends. */
async function scan(file: string): Promise<CarIndex> {
  const handle = await openCar(file)
  try {
    return await indexCar(handle)
  } finally {
    await handle.close()
  }
}

/** @throws NetworkError NotRetrievable */
export async function indexCar(handle: FileHandle): Promise<CarIndex> {
  const index = new CarIndex()
  for await (const { cid, offset } of sectionsOf(handle)) {
    const { digest } = cid.multihash
    if (digest.length >= 8) index.add(digest, offset)
  }
  return index
}

/** @throws NetworkError NotRetrievable */
export async function openCar(file: string): Promise<FileHandle> {
  try {
    return await open(file, 'r')
  } catch (cause) {
    throw new NetworkError('NotRetrievable', 'The CAR of the deal is missing.', { cause })
  }
}

/** Initial number of slots; always a power of two. */
const FIRST_SLOTS = 1024

/**
 * Locates the blocks of a CAR: a hash table from the first 8 bytes of a digest to the offset of the first section with
 * such a digest. It takes 16 bytes per slot and has 1.5 to 3 slots per block, so at most 48 bytes per block, and half
 * as much again while it grows.
 */
class CarIndex {
  #keys = new Uint32Array(2 * FIRST_SLOTS)
  /** Offset of the section plus one; 0 marks an empty slot. */
  #offsets = new Float64Array(FIRST_SLOTS)
  #marks: Uint8Array | undefined
  #count = 0

  get bytes(): number {
    return this.#keys.byteLength + this.#offsets.byteLength
  }

  add(digest: Uint8Array, offset: number): void {
    const [a, b] = keyOf(digest)
    const slot = this.#find(a, b)
    if (this.#offsets[slot] !== 0) return
    this.#set(slot, a, b, offset + 1)
    if (++this.#count * 1.5 > this.#offsets.length) this.#grow()
  }

  /** The caller must still compare the whole digest. */
  offsetOf(digest: Uint8Array): number | undefined {
    const [a, b] = keyOf(digest)
    const offset = this.#offsets[this.#find(a, b)] ?? 0
    return offset === 0 ? undefined : offset - 1
  }

  /**
   * Marks a block, once for each bit of `mark` (1 or 2). Returns false when it already has that mark. No block may be
   * added afterwards. Takes one more byte per slot.
   */
  mark(digest: Uint8Array, mark: 1 | 2): boolean {
    this.#marks ??= new Uint8Array(this.#offsets.length)
    const slot = this.#find(...keyOf(digest))
    const before = this.#marks[slot] ?? 0
    this.#marks[slot] = before | mark
    return (before & mark) === 0
  }

  /** Returns the slot of this key, or the empty slot where it belongs. */
  #find(a: number, b: number): number {
    const mask = this.#offsets.length - 1
    let slot = a & mask
    while (this.#offsets[slot] !== 0 && (this.#keys[2 * slot] !== a || this.#keys[2 * slot + 1] !== b)) {
      slot = (slot + 1) & mask
    }
    return slot
  }

  #set(slot: number, a: number, b: number, offset: number): void {
    this.#keys[2 * slot] = a
    this.#keys[2 * slot + 1] = b
    this.#offsets[slot] = offset
  }

  #grow(): void {
    const keys = this.#keys
    const offsets = this.#offsets
    this.#keys = new Uint32Array(2 * keys.length)
    this.#offsets = new Float64Array(2 * offsets.length)
    for (const [slot, offset] of offsets.entries()) {
      if (offset === 0) continue
      const a = keys[2 * slot] ?? 0
      const b = keys[2 * slot + 1] ?? 0
      this.#set(this.#find(a, b), a, b, offset)
    }
  }
}

function keyOf(digest: Uint8Array): [number, number] {
  const view = new DataView(digest.buffer, digest.byteOffset, 8)
  return [view.getUint32(0), view.getUint32(4)]
}

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
