import { type FileHandle, open, unlink } from 'node:fs/promises'
import { dirname } from 'node:path'
import { CarWriter } from '@ipld/car'
import { CID } from 'multiformats/cid'
import { syncFolder } from '../../sync-folder.js'
import { digestSha256 } from './sha256.js'
import type { BlockSink } from './unixfs.js'

/** Small blocks are gathered up to this many bytes before they go to the disk. */
const GATHER_BYTES = 1024 * 1024

/** Stands in the header until the root is known; of the same length as any root: CIDv1, a codec of one byte, SHA-256. */
const ROOT_TO_COME = CID.createV1(0x55, digestSha256(new Uint8Array()))

/** A CAR that is being written. To be ended with `finish` or `discard`. */
export class CarFile implements BlockSink {
  readonly #path: string
  readonly #handle: FileHandle
  readonly #writer: ReturnType<typeof CarWriter.create>['writer']
  readonly #written: Promise<void>
  #failure: unknown
  #size = 0

  private constructor(path: string, handle: FileHandle) {
    const { writer, out } = CarWriter.create([ROOT_TO_COME])
    this.#path = path
    this.#handle = handle
    this.#writer = writer
    this.#written = this.#write(out)
  }

  /** Replaces a file of that name. */
  static async create(path: string): Promise<CarFile> {
    return new CarFile(path, await open(path, 'w+', 0o600))
  }

  async put(cid: CID, bytes: Uint8Array | Iterable<Uint8Array> | AsyncIterable<Uint8Array>): Promise<CID> {
    if (this.#failure !== undefined) throw this.#failure
    if (!(bytes instanceof Uint8Array)) throw new TypeError('A block is put in one piece.')
    await this.#writer.put({ cid, bytes })
    if (this.#failure !== undefined) throw this.#failure
    return cid
  }

  /** Writes the root, makes file and name durable. @returns bytes of the CAR */
  async finish(root: CID): Promise<number> {
    await this.#writer.close()
    await this.#written
    if (this.#failure !== undefined) throw this.#failure
    await CarWriter.updateRootsInFile(this.#handle, [root])
    await this.#handle.sync()
    await this.#handle.close()
    await syncFolder(dirname(this.#path))
    return this.#size
  }

  /** Removes the file. May follow a `finish` that failed. */
  async discard(): Promise<void> {
    await this.#writer.close().catch(() => undefined)
    await this.#written
    await this.#handle.close().catch(() => undefined)
    await unlink(this.#path)
  }

  /** Takes everything to the end also after a failure: the writer waits until its bytes are taken and would never hear of it. */
  async #write(out: AsyncIterable<Uint8Array>): Promise<void> {
    let gathered: Uint8Array[] = []
    let length = 0
    const flush = async (): Promise<void> => {
      const bytes = gathered.length === 1 && gathered[0] !== undefined ? gathered[0] : Buffer.concat(gathered, length)
      gathered = []
      length = 0
      if (this.#failure !== undefined || bytes.length === 0) return
      try {
        // Of a file handle, this writes on where the last one ended.
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
