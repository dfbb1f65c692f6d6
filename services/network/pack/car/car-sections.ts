import type { FileHandle } from 'node:fs/promises'
import { decode as decodeCbor } from '@ipld/dag-cbor'
import { varint } from 'multiformats'
import { CID } from 'multiformats/cid'
import { NetworkError } from '../../network.js'

/** Longest head of a section: a length of up to 8 bytes and a CID with a digest of up to 64 bytes. */
export const MAX_HEAD_BYTES = 128
/** Longest header that is read. */
export const MAX_HEADER_BYTES = 64 * 1024

/** Bytes read at once while sections are small, and behind a section that is larger. */
const WINDOW_BYTES = 64 * 1024

interface Section {
  readonly cid: CID
  /** Offset of the length in front of the CID. */
  readonly offset: number
  /** Offset of the first byte of the block. */
  readonly blockOffset: number
  /** Offset of the byte behind the block. */
  readonly end: number
}

/**
 * Parses the head of a section at the start of `bytes`.
 * @throws when they are not a section
 */
export function parseSection(bytes: Uint8Array, offset: number): Section {
  const [length, lengthBytes] = varint.decode(bytes)
  const [cid, rest] = CID.decodeFirst(bytes.subarray(lengthBytes))
  const end = offset + lengthBytes + length
  const blockOffset = offset + bytes.length - rest.length
  if (blockOffset > end) throw new RangeError('The section is shorter than its CID.')
  return { cid, offset, blockOffset, end }
}

/**
 * Yields all sections of a CARv1 in order; reads only their heads.
 * @throws NetworkError NotRetrievable when the CAR is truncated or invalid
 */
export async function* sectionsOf(handle: FileHandle): AsyncIterable<Section> {
  const { size } = await handle.stat()
  const window = new Window(handle)
  let offset = (await readHeader(window, size)).end
  while (offset < size) {
    const section = sectionAt(await window.read(offset, MAX_HEAD_BYTES), offset)
    if (section.end > size) throw cut()
    yield section
    offset = section.end
  }
}

/**
 * The roots that the header of a CARv1 names.
 * @throws NetworkError NotRetrievable when it is none
 */
export async function rootsOf(handle: FileHandle): Promise<readonly CID[]> {
  return (await readHeader(new Window(handle), (await handle.stat()).size)).roots
}

interface Header {
  /** Offset of the first section. */
  readonly end: number
  readonly roots: CID[]
}

async function readHeader(window: Window, size: number): Promise<Header> {
  return parseHeader(await window.read(0, Math.min(size, MAX_HEADER_BYTES)))
}

/**
 * Parses the header at the start of `bytes`, which are `MAX_HEADER_BYTES` or the whole CAR.
 * @throws NetworkError NotRetrievable
 */
export function parseHeader(bytes: Uint8Array): Header {
  try {
    const [length, lengthBytes] = varint.decode(bytes)
    const end = lengthBytes + length
    if (end > MAX_HEADER_BYTES) throw new RangeError('The header of the CAR is too long.')
    if (end > bytes.length) throw new RangeError('The header of the CAR is truncated.')
    const header: unknown = decodeCbor(bytes.subarray(lengthBytes, end))
    const { version, roots } = (header ?? {}) as { version?: unknown; roots?: unknown }
    if (version !== 1) throw new RangeError('The CAR is not of version 1.')
    return { end, roots: Array.isArray(roots) ? roots.map(CID.asCID).filter((root) => root !== null) : [] }
  } catch (cause) {
    throw new NetworkError('NotRetrievable', 'The file is not a CAR.', { cause })
  }
}

function sectionAt(bytes: Uint8Array, offset: number): Section {
  try {
    return parseSection(bytes, offset)
  } catch (cause) {
    throw new NetworkError('NotRetrievable', 'The CAR is damaged.', { cause })
  }
}

const cut = (): NetworkError => new NetworkError('NotRetrievable', 'The CAR is truncated.')

/** Reads ahead when the next read is likely to be near. */
class Window {
  readonly #handle: FileHandle
  #bytes: Uint8Array = new Uint8Array()
  #start = 0

  constructor(handle: FileHandle) {
    this.#handle = handle
  }

  /** Returns `count` bytes or more, fewer only at the end of the file. */
  async read(offset: number, count: number): Promise<Uint8Array> {
    const end = this.#start + this.#bytes.length
    if (offset < this.#start || offset + count > end) {
      const near = offset <= end + WINDOW_BYTES
      this.#bytes = await readAt(this.#handle, offset, near ? Math.max(count, WINDOW_BYTES) : count)
      this.#start = offset
    }
    return this.#bytes.subarray(offset - this.#start)
  }
}

/**
 * Reads the bytes at this offset; fewer only at the end of the file.
 * @throws NetworkError NotRetrievable when the disk fails
 */
export async function readAt(handle: FileHandle, offset: number, count: number): Promise<Uint8Array> {
  const buffer = Buffer.allocUnsafeSlow(count)
  let length = 0
  while (length < count) {
    const { bytesRead } = await read(handle, buffer, length, offset + length)
    if (bytesRead === 0) break
    length += bytesRead
  }
  return buffer.subarray(0, length)
}

async function read(handle: FileHandle, buffer: Buffer, at: number, position: number): Promise<{ bytesRead: number }> {
  try {
    return await handle.read(buffer, at, buffer.length - at, position)
  } catch (cause) {
    throw new NetworkError('NotRetrievable', 'The CAR of the deal cannot be read.', { cause })
  }
}
