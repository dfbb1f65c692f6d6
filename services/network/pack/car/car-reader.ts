import { type FileHandle, open } from 'node:fs/promises'
import type { CID } from 'multiformats/cid'
import { type Car, NetworkError } from '../../network.js'
import { EmptyReadLimit } from '../dag/directory.js'
import { type BlockSource, readFileNode, verifiedBlock } from '../dag/unixfs.js'
import { walkFile } from '../dag/verify-leaves.js'
import { CarBlocks, CarIndexes, openCar } from './car-indexes.js'
import { readAt, rootsOf, sectionsOf } from './car-sections.js'

/** Default size of the index cache, bytes: enough for CARs with more than a million blocks in total. */
const INDEX_BYTES = 64 * 1024 * 1024

/** An open CAR. Every method throws NetworkError NotRetrievable for a block that is missing, damaged or of no file. */
export interface OpenCar {
  /** The block of this CID, after it was hashed. */
  block(cid: CID): Promise<Uint8Array>
  /** Bytes of the file whose DAG has the root `cid`. */
  fileSize(cid: CID): Promise<number>
  /** Bytes `first` to `last` of that file; reads no leaf outside of them. */
  range(cid: CID, first: number, last: number): AsyncIterable<Uint8Array>
  whole(): AsyncIterable<Uint8Array>
  close(): Promise<void>
}

/** Opens CARs, and keeps their indexes as `createReadFromCar` does. */
export class CarReader {
  readonly #indexes: CarIndexes

  /** @param indexBytes bytes of the index cache; indexes in use may exceed it */
  constructor(indexBytes = INDEX_BYTES) {
    this.#indexes = new CarIndexes(indexBytes)
  }

  /**
   * @param check called before each block is read, those within files, too; what it throws ends the reading
   * @throws NetworkError NotRetrievable
   */
  async open(file: string, check: (cid: CID) => void = () => {}): Promise<OpenCar> {
    const handle = await openCar(file)
    try {
      const blocks = new CarBlocks(handle, await this.#indexes.of(file, handle), undefined)
      return openedCar(handle, {
        get(cid) {
          check(cid)
          return blocks.get(cid)
        },
      })
    } catch (error) {
      await handle.close()
      throw error
    }
  }
}

function openedCar(handle: FileHandle, blocks: BlockSource): OpenCar {
  return {
    block: (cid) => blocks.get(cid),
    async fileSize(cid) {
      const { content, links } = readFileNode(cid, await blocks.get(cid))
      return links.reduce((sum, { size }) => sum + size, content.length)
    },
    async *range(root, first, last) {
      let position = 0
      const limit = new EmptyReadLimit(root)
      const overlaps = (size: number): boolean => Number.isNaN(size) || (position + size > first && position <= last)
      const isRead = ({ size }: { readonly size: number }): boolean => {
        if (position > last || !overlaps(size)) return false
        limit.read()
        return true
      }
      for await (const part of walkFile(root, blocks, isRead)) {
        if ('unread' in part) {
          position += part.unread.size
          continue
        }
        const { content } = part
        const from = Math.max(0, first - position)
        const to = Math.min(content.length, last + 1 - position)
        if (to > from) {
          limit.found()
          yield content.subarray(from, to)
        }
        position += content.length
      }
    },
    async *whole() {
      let at = 0
      for await (const { cid, blockOffset, end } of sectionsOf(handle)) {
        const section = await readAt(handle, at, end - at)
        verifiedBlock(cid, section.subarray(blockOffset - at))
        yield section
        at = end
      }
    },
    close: () => handle.close(),
  }
}

/**
 * Reads a file as a CAR: its one root, and the heads of all blocks, among which that of the root is. Does not hash the
 * blocks. Rejects with NetworkError DataRefused for any other file.
 */
export async function wholeCar(file: string, signal?: AbortSignal): Promise<Car> {
  const handle = await open(file, 'r')
  try {
    const [root, another] = await rootsOf(handle)
    if (root === undefined || another !== undefined) throw refusal('The CAR does not have one root.')
    let hasRoot = false
    for await (const { cid } of sectionsOf(handle)) {
      signal?.throwIfAborted()
      hasRoot ||= cid.equals(root)
    }
    if (!hasRoot) throw refusal('The CAR does not contain its root.')
    return { file, dataCid: root.toString(), size: (await handle.stat()).size }
  } catch (error) {
    throw error instanceof NetworkError ? refusal(error.message, error) : error
  } finally {
    await handle.close()
  }
}

function refusal(message: string, cause?: unknown): NetworkError {
  return new NetworkError('DataRefused', message, { cause })
}
