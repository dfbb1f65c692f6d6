import { writev } from 'node:fs'
import { type FileHandle, open } from 'node:fs/promises'
import { syncFolder } from '../../sync-folder.js'

/** Bytes collected before they are written. */
const BATCH = 512 * 1024
/** Bytes that may wait for the disk before the source is asked to pause. */
const HIGH_WATER = 4 * BATCH

/** A body on its way into a new file. Errors of the disk come out of `ready` and `finish`. */
export class BlobFile {
  readonly generation: string
  readonly #handle: FileHandle
  /** The folder's entry of the file on its way to the disk. */
  readonly #entered: Promise<void>
  #waiting: Buffer[] = []
  #waitingBytes = 0
  #position = 0
  #running: Promise<void> | undefined
  #failure: Error | undefined

  private constructor(generation: string, handle: FileHandle, entered: Promise<void>) {
    this.generation = generation
    this.#handle = handle
    this.#entered = entered
  }

  static async create(generation: string, folder: string, path: string): Promise<BlobFile> {
    const handle = await open(path, 'wx', 0o600)
    const entered = syncFolder(folder)
    // Told by `finish`; without this an upload that fails earlier would leave a rejection that nobody handles.
    entered.catch(() => {})
    return new BlobFile(generation, handle, entered)
  }

  /** Takes the chunk over. False: wait for `ready` before the next one. */
  write(chunk: Buffer): boolean {
    this.#waiting.push(chunk)
    this.#waitingBytes += chunk.length
    if (this.#running === undefined && this.#waitingBytes >= BATCH) this.#running = this.#drain()
    return this.#failure === undefined && this.#waitingBytes < HIGH_WATER
  }

  async ready(): Promise<void> {
    await this.#running
    if (this.#failure !== undefined) throw this.#failure
  }

  /** Resolves when all of it is on the disk. The handle is closed either way. */
  async finish(): Promise<void> {
    try {
      await this.ready()
      await this.#writeWaiting()
      await Promise.all([this.#handle.datasync(), this.#entered])
    } finally {
      await this.#handle.close()
    }
  }

  async abandon(): Promise<void> {
    await this.#running
    await this.#handle.close()
  }

  async #drain(): Promise<void> {
    try {
      while (this.#waitingBytes >= BATCH) await this.#writeWaiting()
    } catch (error) {
      this.#failure = error as Error
    } finally {
      this.#running = undefined
    }
  }

  async #writeWaiting(): Promise<void> {
    let buffers = this.#waiting
    this.#waiting = []
    this.#waitingBytes = 0
    while (buffers.length > 0) {
      const written = await writeVector(this.#handle.fd, buffers, this.#position)
      this.#position += written
      buffers = unwritten(buffers, written)
    }
  }
}

/** The callback form costs a quarter of FileHandle.writev. */
function writeVector(fd: number, buffers: Buffer[], position: number): Promise<number> {
  return new Promise((resolve, reject) => {
    writev(fd, buffers, position, (error, written) => (error === null ? resolve(written) : reject(error)))
  })
}

function unwritten(buffers: Buffer[], written: number): Buffer[] {
  let rest = written
  for (const [index, buffer] of buffers.entries()) {
    if (rest < buffer.length) return [buffer.subarray(rest), ...buffers.slice(index + 1)]
    rest -= buffer.length
  }
  return []
}
