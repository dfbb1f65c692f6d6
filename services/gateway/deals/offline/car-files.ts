import { createHash } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { type FileHandle, open, readdir, rm, statfs } from 'node:fs/promises'
import { join } from 'node:path'
import { makeFoldersSoon, syncFolder } from '../../../../common/files/private-file.js'

/** Free bytes that packing leaves on the disk. */
const MARGIN = 64 * 1024 * 1024
const CHUNK_BYTES = 1024 * 1024

/** The folder with the CARs of offline tasks: one folder per task, named by its UUID, one file per deal. */
export class CarFiles {
  readonly #folder: string

  constructor(folder: string) {
    this.#folder = folder
  }

  path(uuid: string, deal: number): string {
    return join(this.#folder, uuid, `${deal}.car`)
  }

  /** Makes the folder of a task. Durable. */
  async make(uuid: string): Promise<void> {
    await makeFoldersSoon(join(this.#folder, uuid))
    await syncFolder(this.#folder)
  }

  open(uuid: string, deal: number): Promise<FileHandle> {
    return open(this.path(uuid, deal), 'r')
  }

  async remove(uuid: string, deal: number): Promise<void> {
    await rm(this.path(uuid, deal), { force: true })
  }

  async removeAll(uuid: string): Promise<void> {
    await rm(join(this.#folder, uuid), { recursive: true, force: true })
  }

  /** UUIDs of the tasks that have folders. */
  async list(): Promise<string[]> {
    await makeFoldersSoon(this.#folder)
    return readdir(this.#folder)
  }

  async hasRoom(bytes: number): Promise<boolean> {
    const { bavail, bsize } = await statfs(this.#folder)
    return bytes + MARGIN <= bavail * bsize
  }

  async md5(uuid: string, deal: number, signal: AbortSignal): Promise<string> {
    const digest = createHash('md5')
    const stream = createReadStream(this.path(uuid, deal), { highWaterMark: CHUNK_BYTES, signal })
    for await (const chunk of stream) digest.update(chunk)
    return digest.digest('hex')
  }
}
