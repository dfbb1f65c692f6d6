import { closeSync, fsyncSync, openSync, read, readdirSync, writev } from 'node:fs'
import { type FileHandle, open, readdir, stat, unlink } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { makeFolders, makeFoldersSoon, syncFolder } from '../../common/files/private-file.js'
import { freeBuffer } from '../../common/free-buffer.js'
import type { ServicesLog } from '../log.js'
import {
  type Bodies,
  BodyError,
  isNameless,
  MAX_NAMES,
  type NewBody,
  type OpenBody,
  type StoredBody,
  type WithRow,
} from './bodies.js'

/** Files are spread over 256 folders by the last two digits of their names. */
const FOLDER = /^[0-9a-f]{2}$/

/**
 * Bodies as files, created under their final names. What a crash leaves without a row, a sweep removes: at the next
 * start, or, where other processes use the folder, once nothing has been written to it for long.
 */
export class FolderBodies implements Bodies {
  readonly #root: string
  readonly #log: ServicesLog
  readonly #underway = new Set<string>()
  /** Removals under way, by name. */
  readonly #removals = new Map<string, Promise<void>>()
  /** Age from which a file without a row is removed, ms; undefined: any, if it is of an earlier run. */
  readonly #orphanMs: number | undefined
  /** Folders that an earlier run has made. */
  readonly #found: readonly string[]
  /** Folders by name; each is made for its first file. Resolve when the name is on the disk. */
  readonly #folders: Map<string, Promise<void>>
  #stopping = false

  constructor(root: string, log: ServicesLog, orphanMs?: number) {
    this.#root = root
    this.#orphanMs = orphanMs
    this.#log = log
    makeFolders(root)
    // What a crash has left of a folder may not be on the disk yet.
    for (const folder of [dirname(root), root]) {
      const fd = openSync(folder, 'r')
      fsyncSync(fd)
      closeSync(fd)
    }
    this.#found = this.#foldersNow()
    this.#folders = new Map(this.#found.map((name) => [name, Promise.resolve()]))
  }

  async create(name: string): Promise<NewBody> {
    this.#underway.add(name)
    try {
      const folder = this.#nameOfFolder(name)
      await (this.#folders.get(folder) ?? this.#makeFolder(folder))
      const abandoned = () => this.#remove(name)
      return await NewFile.create(name, this.#folder(name), this.#path(name), abandoned, this.#orphanMs)
    } catch (error) {
      this.#underway.delete(name)
      throw error
    }
  }

  committed({ name }: StoredBody): void {
    this.#underway.delete(name)
  }

  /**
   * The sweep of the next start decides: that of this one may ask before the row is there. One of old files comes late
   * enough.
   */
  leave({ name }: StoredBody): void {
    if (this.#orphanMs !== undefined) this.#underway.delete(name)
  }

  async open({ name }: StoredBody): Promise<OpenBody | undefined> {
    try {
      return new OpenFile(name, await open(this.#path(name), 'r'))
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
      throw error
    }
  }

  discard({ name }: StoredBody): void {
    this.#remove(name)
  }

  #remove(name: string): void {
    if (this.#removals.has(name)) return
    const removal = unlink(this.#path(name))
      .catch((error) => {
        if (error.code !== 'ENOENT') this.#log.warn({ err: error }, 'Could not remove the file of an object.')
      })
      .then(() => {
        this.#underway.delete(name)
        this.#removals.delete(name)
      })
    this.#removals.set(name, removal)
  }

  async sweep(withRow: WithRow): Promise<number> {
    let count = 0
    for (const folder of this.#orphanMs === undefined ? this.#found : this.#foldersNow()) {
      const names = await readdir(join(this.#root, folder))
      for (let at = 0; at < names.length && !this.#stopping; at += MAX_NAMES) {
        const some = names.slice(at, at + MAX_NAMES)
        const rows = await withRow(some)
        for (const name of some) if (!rows.has(name) && (await this.#sweepOne(name, withRow))) count++
      }
    }
    return count
  }

  async #sweepOne(name: string, withRow: WithRow): Promise<boolean> {
    if (this.#stopping) return false
    // In this order: a body that is not under way any more has its row, if it gets one.
    if (this.#underway.has(name) || (await this.#isYoung(name)) || !(await isNameless(withRow, name))) return false
    this.#remove(name)
    await this.#removals.get(name)
    return true
  }

  async close(): Promise<void> {
    this.#stopping = true
    await Promise.all(this.#removals.values())
  }

  #foldersNow(): string[] {
    return readdirSync(this.#root).filter((name) => FOLDER.test(name))
  }

  /** True for a file that another process may be writing, or has written and not committed yet. */
  async #isYoung(name: string): Promise<boolean> {
    if (this.#orphanMs === undefined) return false
    try {
      return (await stat(this.#path(name))).mtimeMs > Date.now() - this.#orphanMs
    } catch {
      return true
    }
  }

  #path(name: string): string {
    return join(this.#folder(name), name)
  }

  #makeFolder(name: string): Promise<void> {
    const made = makeFoldersSoon(join(this.#root, name)).then(() => syncFolder(this.#root))
    this.#folders.set(name, made)
    made.catch(() => this.#folders.delete(name))
    return made
  }

  #folder(name: string): string {
    return join(this.#root, this.#nameOfFolder(name))
  }

  #nameOfFolder(name: string): string {
    return name.slice(-2)
  }
}

/** Bytes collected before they are written. */
const BATCH = 512 * 1024

/** Bytes that may be queued for the disk before the source must pause. */
const HIGH_WATER = 4 * BATCH

/** A chunk, and what is called once it is in the file. */
interface Waiting {
  readonly chunk: Buffer
  readonly used: () => void
}

/** Writes a body to a new file. Disk errors surface in `ready` and `finish`. */
class NewFile implements NewBody {
  readonly #name: string
  readonly #handle: FileHandle
  readonly #remove: () => void
  readonly #orphanMs: number | undefined
  /** Resolves when the directory entry of the file is on the disk. */
  readonly #entered: Promise<void>
  #waiting: Waiting[] = []
  #waitingBytes = 0
  #position = 0
  #running: Promise<void> | undefined
  #failure: Error | undefined

  private constructor(
    name: string,
    handle: FileHandle,
    entered: Promise<void>,
    remove: () => void,
    orphanMs: number | undefined,
  ) {
    this.#orphanMs = orphanMs
    this.#name = name
    this.#handle = handle
    this.#remove = remove
    this.#entered = entered
  }

  static async create(
    name: string,
    folder: string,
    path: string,
    remove: () => void,
    orphanMs: number | undefined,
  ): Promise<NewFile> {
    const handle = await open(path, 'wx', 0o600)
    const entered = syncFolder(folder)
    // `finish` reports the error; without this handler an upload that fails earlier leaves an unhandled rejection.
    entered.catch(() => {})
    return new NewFile(name, handle, entered, remove, orphanMs)
  }

  write(chunk: Buffer, used = () => freeBuffer(chunk)): boolean {
    this.#waiting.push({ chunk, used })
    this.#waitingBytes += chunk.length
    if (this.#running === undefined && this.#waitingBytes >= BATCH) this.#running = this.#drain()
    return this.#failure === undefined && this.#waitingBytes < HIGH_WATER
  }

  async ready(): Promise<void> {
    await this.#running
    if (this.#failure !== undefined) throw this.#failure
  }

  /** Closes the handle in any case. */
  async finish(): Promise<StoredBody> {
    try {
      await this.ready()
      await this.#writeWaiting()
      await Promise.all([this.#handle.datasync(), this.#entered])
      const body = { name: this.#name, size: this.#position, mark: null }
      return this.#orphanMs ? { ...body, until: Date.now() + this.#orphanMs / 2 } : body
    } finally {
      await this.#handle.close()
    }
  }

  async abandon(): Promise<void> {
    await this.#running
    await this.#handle.close()
    this.#remove()
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
    const taken = this.#waiting
    this.#waiting = []
    this.#waitingBytes = 0
    for (let buffers = taken.map(({ chunk }) => chunk); buffers.length > 0; ) {
      const written = await writeVector(this.#handle.fd, buffers, this.#position)
      this.#position += written
      buffers = unwritten(buffers, written)
    }
    for (const { used } of taken) used()
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

/** Bytes read per call. */
const CHUNK = 512 * 1024

class OpenFile implements OpenBody {
  readonly #name: string
  readonly #handle: FileHandle

  constructor(name: string, handle: FileHandle) {
    this.#name = name
    this.#handle = handle
  }

  get fd(): number {
    return this.#handle.fd
  }

  async stream(first: number, last: number): Promise<AsyncIterable<Buffer>> {
    return this.#chunks(first, last)
  }

  close(): Promise<void> {
    return this.#handle.close()
  }

  async *#chunks(first: number, last: number): AsyncGenerator<Buffer> {
    for (let position = first; position <= last; ) {
      const buffer = Buffer.allocUnsafe(Math.min(CHUNK, last + 1 - position))
      const bytes = await readInto(this.#handle.fd, buffer, position)
      if (bytes === 0) throw new BodyError('changed', `The file ${this.#name} is shorter than its object.`)
      position += bytes
      yield buffer.subarray(0, bytes)
    }
  }
}

function readInto(fd: number, buffer: Buffer, position: number): Promise<number> {
  return new Promise((resolve, reject) => {
    read(fd, buffer, 0, buffer.length, position, (error, bytes) => (error === null ? resolve(bytes) : reject(error)))
  })
}
