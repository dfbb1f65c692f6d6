import { type FileHandle, open, unlink } from 'node:fs/promises'
import { dirname } from 'node:path'
import { CarWriter } from '@ipld/car'
import { CID } from 'multiformats/cid'
import { syncFolder } from '../../../../common/files/private-file.js'
import type { ReadFromCar } from '../../network.js'
import { type BlockSink, digestOf, parseCid } from '../dag/unixfs.js'
import { walkFile } from '../dag/verify-leaves.js'
import { digestSha256 } from '../sha256.js'
import { CarBlocks, CarIndexes, openCar } from './car-indexes.js'
import { sectionsOf } from './car-sections.js'

/** Small blocks are collected up to this many bytes before they are written. */
const GATHER_BYTES = 1024 * 1024

/**
 * Placeholders in the header until the root is known, of the same length as any root of that version: with a codec of
 * one byte, and SHA-256.
 */
const ROOTS_TO_COME = {
  0: CID.createV0(digestSha256(new Uint8Array())),
  1: CID.createV1(0x55, digestSha256(new Uint8Array())),
} as const

export type CidVersion = keyof typeof ROOTS_TO_COME

/** A CAR that is being written. Call `finish` or `discard` at the end. */
export class CarFile implements BlockSink {
  readonly #path: string
  readonly #handle: FileHandle
  readonly #writer: ReturnType<typeof CarWriter.create>['writer']
  readonly #written: Promise<void>
  #failure: unknown
  #size = 0

  private constructor(path: string, handle: FileHandle, version: CidVersion) {
    const { writer, out } = CarWriter.create([ROOTS_TO_COME[version]])
    this.#path = path
    this.#handle = handle
    this.#writer = writer
    this.#written = this.#write(out)
  }

  /**
   * Replaces an existing file.
   * @param version of the root's CID
   */
  static async create(path: string, version: CidVersion = 1): Promise<CarFile> {
    return new CarFile(path, await open(path, 'w+', 0o600), version)
  }

  async put(cid: CID, bytes: Uint8Array | Iterable<Uint8Array> | AsyncIterable<Uint8Array>): Promise<CID> {
    if (this.#failure !== undefined) throw this.#failure
    if (!(bytes instanceof Uint8Array)) throw new TypeError('A block is put in one piece.')
    await this.#writer.put({ cid, bytes })
    if (this.#failure !== undefined) throw this.#failure
    return cid
  }

  /**
   * Writes the root and makes the file and its name durable.
   * @returns size of the CAR, bytes
   */
  async finish(root: CID): Promise<number> {
    await this.#writeRoot(root)
    await this.#handle.sync()
    await this.#handle.close()
    await syncFolder(dirname(this.#path))
    return this.#size
  }

  /** Like `finish`, for a file that need not survive this process. */
  async end(root: CID): Promise<void> {
    await this.#writeRoot(root)
    await this.#handle.close()
  }

  async #writeRoot(root: CID): Promise<void> {
    await this.#writer.close()
    await this.#written
    if (this.#failure !== undefined) throw this.#failure
    await CarWriter.updateRootsInFile(this.#handle, [root])
  }

  /** Removes the file. May be called after a failed `finish`. */
  async discard(): Promise<void> {
    await this.#writer.close().catch(() => undefined)
    await this.#written
    await this.#handle.close().catch(() => undefined)
    await unlink(this.#path)
  }

  /**
   * Consumes the whole stream even after a failure: otherwise the writer would wait forever for its bytes to be
   * consumed.
   */
  async #write(out: AsyncIterable<Uint8Array>): Promise<void> {
    let gathered: Uint8Array[] = []
    let length = 0
    const flush = async (): Promise<void> => {
      const bytes = gathered.length === 1 && gathered[0] !== undefined ? gathered[0] : Buffer.concat(gathered, length)
      gathered = []
      length = 0
      if (this.#failure !== undefined || bytes.length === 0) return
      try {
        // On a file handle, this continues behind the previous write.
        await this.#handle.writeFile(bytes)
        this.#size += bytes.length
      } catch (error) {
        this.#failure = error
      }
    }
    for await (const chunk of out) {
      if (length + chunk.length > GATHER_BYTES) await flush()
      gathered.push(chunk)
      length += chunk.length
    }
    await flush()
  }
}

/**
 * The SHA-256 digests of all blocks of a CAR, in its order. Reads only their heads.
 * @throws NetworkError NotRetrievable
 */
export async function digestsOfCar(file: string): Promise<Uint8Array[]> {
  const handle = await openCar(file)
  try {
    const digests: Uint8Array[] = []
    // A digest is a part of what was read ahead, which it would hold in memory.
    for await (const { cid } of sectionsOf(handle)) digests.push(Uint8Array.from(digestOf(cid)))
    return digests
  } finally {
    await handle.close()
  }
}

/** Size of the index cache, bytes: enough for a million blocks. Indexes in use may exceed it. */
const MAX_INDEX_BYTES = 64 * 1024 * 1024

/**
 * Creates a reader. The first read of a CAR scans the heads of its blocks, with one disk read per large block or per 64
 * KiB of small ones. The resulting index takes up to 48 bytes per distinct block and is cached. Besides it, a read
 * holds one block and the nodes above it.
 */
export function createReadFromCar(): ReadFromCar {
  const indexes = new CarIndexes(MAX_INDEX_BYTES)
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

/**
 * Yields the values of `source` until the signal aborts, and then throws the signal's reason at once, even while the
 * source is pending. Its return is requested but not awaited, since a source that hangs would never answer.
 */
export async function* abortable<T>(source: AsyncIterable<T>, signal: AbortSignal | undefined): AsyncIterable<T> {
  const iterator = source[Symbol.asyncIterator]()
  let ended = false
  try {
    for (;;) {
      const next = await beforeAbort(() => iterator.next(), signal)
      if (next.done) {
        ended = true
        return
      }
      yield next.value
    }
  } finally {
    if (!ended) iterator.return?.().catch(() => undefined)
  }
}

/** Rejects with the reason of the signal if it aborts first. The started operation is not interrupted. */
function beforeAbort<T>(start: () => Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  if (signal === undefined) return start()
  return new Promise((resolve, reject) => {
    if (signal.aborted) return reject(signal.reason)
    const abort = (): void => reject(signal.reason)
    signal.addEventListener('abort', abort, { once: true })
    start()
      .then(resolve, reject)
      .finally(() => signal.removeEventListener('abort', abort))
  })
}
