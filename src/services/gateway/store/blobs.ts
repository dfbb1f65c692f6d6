import { randomBytes } from 'node:crypto'
import { closeSync, fsyncSync, mkdirSync, openSync, readdirSync, writev } from 'node:fs'
import { type FileHandle, mkdir, open, readdir, unlink } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { syncFolder } from '../../../common/files/private-file.js'
import type { Clock } from '../../clock.js'
import type { ServicesLog } from '../../log.js'

/** Files are spread over 256 folders by the last two digits of their names. */
const FOLDER = /^[0-9a-f]{2}$/

/**
 * Bodies as files. Names are made of the time and random digits, never of keys. A file is created under its final name
 * and counts once a row of the index names it. A file without a row is garbage: it is removed at once, or after a crash
 * by the sweep at the next start.
 */
export class Blobs {
  readonly #root: string
  readonly #clock: Clock
  readonly #log: ServicesLog
  readonly #underway = new Set<string>()
  /** Removals under way, by generation. */
  readonly #removals = new Map<string, Promise<void>>()
  /** Folders that an earlier run has made. */
  readonly #found: readonly string[]
  /** Folders by name; each is made for its first file. Resolve when the name is on the disk. */
  readonly #folders: Map<string, Promise<void>>
  #stopping = false

  constructor(root: string, clock: Clock, log: ServicesLog) {
    this.#root = root
    this.#clock = clock
    this.#log = log
    mkdirSync(root, { recursive: true, mode: 0o700 })
    // What a crash has left of a folder may not be on the disk yet.
    for (const folder of [dirname(root), root]) {
      const fd = openSync(folder, 'r')
      fsyncSync(fd)
      closeSync(fd)
    }
    this.#found = readdirSync(root).filter((name) => FOLDER.test(name))
    this.#folders = new Map(this.#found.map((name) => [name, Promise.resolve()]))
  }

  /** Returns a unique name: 16 digits of time and 16 random digits. */
  newGeneration(): string {
    return this.#clock.now().toString(16).padStart(16, '0') + randomBytes(8).toString('hex')
  }

  /** Creates the file of a new body. Call `committed` once its row is committed, or else `discard`. */
  async create(generation = this.newGeneration()): Promise<BlobFile> {
    this.#underway.add(generation)
    try {
      const folder = this.#nameOfFolder(generation)
      await (this.#folders.get(folder) ?? this.#makeFolder(folder))
      return await BlobFile.create(generation, this.#folder(generation), this.path(generation))
    } catch (error) {
      this.#underway.delete(generation)
      throw error
    }
  }

  /** Creates the file of an existing generation again. At most one call per generation may run at a time. */
  async recreate(generation: string): Promise<BlobFile> {
    await this.#removals.get(generation)
    // A crash may have left a file that the sweep has not removed yet.
    this.discard(generation)
    await this.#removals.get(generation)
    return this.create(generation)
  }

  committed(generation: string): void {
    this.#underway.delete(generation)
  }

  open(generation: string): Promise<FileHandle> {
    return open(this.path(generation), 'r')
  }

  /** Removes the file in the background. Downloads that have it open still read it to the end. */
  discard(generation: string): void {
    if (this.#removals.has(generation)) return
    const removal = unlink(this.path(generation))
      .catch((error) => {
        if (error.code !== 'ENOENT') this.#log.warn({ err: error }, 'Could not remove the file of an object.')
      })
      .then(() => {
        this.#underway.delete(generation)
        this.#removals.delete(generation)
      })
    this.#removals.set(generation, removal)
  }

  /**
   * Removes files of earlier runs without a row and resolves with their number. Runs safely beside all other
   * operations.
   */
  async sweep(hasRow: (generation: string) => boolean): Promise<number> {
    let count = 0
    for (const folder of this.#found) {
      if (this.#stopping) break
      for (const name of await readdir(join(this.#root, folder))) {
        if (this.#stopping) break
        // There is no await between the two checks, so an upload is either in `#underway` or has its row.
        if (this.#underway.has(name) || hasRow(name)) continue
        this.discard(name)
        await this.#removals.get(name)
        count++
      }
    }
    return count
  }

  /** Resolves when no removal is under way. */
  async close(): Promise<void> {
    this.#stopping = true
    await Promise.all(this.#removals.values())
  }

  path(generation: string): string {
    return join(this.#folder(generation), generation)
  }

  #makeFolder(name: string): Promise<void> {
    const made = mkdir(join(this.#root, name), { recursive: true, mode: 0o700 }).then(() => syncFolder(this.#root))
    this.#folders.set(name, made)
    made.catch(() => this.#folders.delete(name))
    return made
  }

  #folder(generation: string): string {
    return join(this.#root, this.#nameOfFolder(generation))
  }

  #nameOfFolder(generation: string): string {
    return generation.slice(-2)
  }
}

/** Bytes collected before they are written. */
const BATCH = 512 * 1024

/** Bytes that may be queued for the disk before the source must pause. */
const HIGH_WATER = 4 * BATCH

/** Writes a body to a new file. Disk errors surface in `ready` and `finish`. */
class BlobFile {
  readonly generation: string
  readonly #handle: FileHandle
  /** Resolves when the directory entry of the file is on the disk. */
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
    // `finish` reports the error; without this handler an upload that fails earlier leaves an unhandled rejection.
    entered.catch(() => {})
    return new BlobFile(generation, handle, entered)
  }

  /** Takes ownership of the chunk. Returns false when the caller must await `ready` before the next chunk. */
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

  /** Resolves when the whole body is on the disk. Closes the handle in any case. */
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

/** The callback form costs a quarter of what FileHandle.writev costs. */
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
