import { type FileHandle, open } from 'node:fs/promises'
import { NetworkError } from '../../network.js'
import { CarIndex } from './car-index.js'
import { sectionsOf } from './car-sections.js'

interface Kept {
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
  readonly #kept = new Map<string, Kept>()

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

  #make(file: string, identity: string): Kept {
    const kept: Kept = { identity, index: scan(file), bytes: 0 }
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
