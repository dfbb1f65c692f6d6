import type { ReadFromCar } from '../../packing.js'
import { beforeAbort } from '../abortable.js'
import { parseCid } from '../dag/cid-text.js'
import { walkFile } from '../dag/file-walk.js'
import { CarBlocks } from './car-blocks.js'
import { CarIndexes, openCar } from './car-indexes.js'

/** Default size of the index cache, bytes: enough for CARs with more than a million blocks in total. */
const DEFAULT_INDEX_BYTES = 64 * 1024 * 1024

/**
 * Creates a reader. The first read of a CAR scans the heads of its blocks, with one disk read per large block or per 64
 * KiB of small ones. The resulting index takes up to 48 bytes per distinct block and is cached. Besides it, a read
 * holds one block and the nodes above it.
 * @param indexBytes bytes of the index cache; indexes in use may exceed it
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
