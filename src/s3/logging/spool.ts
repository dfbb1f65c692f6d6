import { createHash, randomBytes } from 'node:crypto'
import { type FileHandle, open, readdir, readFile, rename, rm, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { makeFoldersSoon } from '../../../common/files/private-file.js'
import type { Logger } from '../../../common/log.js'
import type { LoggingConfiguration } from './configuration.js'

/** Lines that wait for a delivery to the same place. */
export interface Spooled {
  readonly bucket: string
  readonly logging: LoggingConfiguration
}

/** Most bytes of lines that wait in memory; more are dropped. */
const MAX_BUFFERED = 8 * 1024 * 1024
/** Bytes of lines of one file that are written at once. */
const WRITE_BYTES = 256 * 1024
/** Bytes at which a file is delivered. It is read as a whole then. */
const FILE_BYTES = 4 * 1024 * 1024

const MODE = 0o600
const OPEN = '.open'
const SEALED = '.log'

interface Buffered extends Spooled {
  lines: string[]
  bytes: number
}

interface OpenFile {
  /** When the file was begun, by `performance.now()`, ms; 0 for one of an earlier process. */
  readonly since: number
  bytes: number
}

/** A file that takes no more lines. */
export interface SealedFile {
  readonly name: string
  /** Stands for the place that its lines go to. */
  readonly place: string
  /** UTC day of its requests: `2026-11-23`. */
  readonly day: string
  /** UTC, when it was closed: `2026-11-23-01-02-03`. */
  readonly time: string
  readonly unique: string
}

interface SpoolOptions {
  /** Folder of this process alone. */
  readonly folder: string
  /** Most bytes of all files. */
  readonly maxBytes: number
  /** Age at which a file is sealed, ms. */
  readonly intervalMs: number
  readonly log: Logger
  /** Counts lines that are not delivered. */
  readonly onDropped: (lines: number) => void
}

/**
 * The lines of access logs, in one file for each bucket, day and place, until they are delivered. A line is in a file
 * within about a second; a process that is killed loses the lines of that time. The first line of a file says where the
 * others go, so that a change of the configuration, or the end of the bucket, loses nothing.
 */
export class LogSpool {
  readonly #options: SpoolOptions
  readonly #buffers = new Map<string, Buffered>()
  readonly #open = new Map<string, OpenFile>()
  readonly #sealed: SealedFile[] = []
  readonly #sizes = new Map<string, number>()
  #bufferedBytes = 0
  #fileBytes = 0
  #writing: Promise<void> = Promise.resolve()

  private constructor(options: SpoolOptions) {
    this.#options = options
  }

  /** Takes over what an earlier process has left in the folder. */
  static async open(options: SpoolOptions): Promise<LogSpool> {
    const spool = new LogSpool(options)
    await makeFoldersSoon(options.folder)
    for (const name of (await readdir(options.folder)).sort()) await spool.#takeOver(name)
    return spool
  }

  /** Bytes in files and in memory. */
  get bytes(): number {
    return this.#fileBytes + this.#bufferedBytes
  }

  /** Oldest first. */
  get sealed(): readonly SealedFile[] {
    return this.#sealed
  }

  /** Adds a line without a line feed. Does not wait for the disk. */
  add(spooled: Spooled, day: string, line: string): void {
    const size = Buffer.byteLength(line) + 1
    if (this.#bufferedBytes + size > MAX_BUFFERED) {
      this.#options.onDropped(1)
      return
    }
    const name = `${encodeURIComponent(spooled.bucket)}+${day}+${placeOf(spooled.logging)}${OPEN}`
    let buffer = this.#buffers.get(name)
    if (!buffer) {
      buffer = { ...spooled, lines: [], bytes: 0 }
      this.#buffers.set(name, buffer)
    }
    this.#fileOf(name)
    buffer.lines.push(line)
    buffer.bytes += size
    this.#bufferedBytes += size
    if (buffer.bytes >= WRITE_BYTES) void this.flush()
  }

  /** Writes what waits in memory, and seals the files that are due; `all`: every file. Never rejects. */
  flush(all = false): Promise<void> {
    this.#writing = this.#writing.then(async () => {
      for (const [name, buffer] of [...this.#buffers]) {
        this.#buffers.delete(name)
        await this.#write(name, buffer)
      }
      for (const [name, file] of [...this.#open])
        if (file.bytes > 0 && (all || this.#isDue(file))) await this.#seal(name)
      await this.#makeRoom()
    })
    return this.#writing
  }

  /** Undefined if another process has taken the file over, or nothing in it can be read. */
  async read({ name }: SealedFile): Promise<(Spooled & { readonly lines: Buffer }) | undefined> {
    const bytes = await readFile(join(this.#options.folder, name)).catch(() => undefined)
    const head = bytes?.indexOf(LINE_FEED) ?? -1
    // A process that was killed may have left a part of a line.
    const end = bytes?.lastIndexOf(LINE_FEED) ?? -1
    if (!bytes || head < 0 || end <= head) return undefined
    try {
      return { ...(JSON.parse(bytes.toString('utf8', 0, head)) as Spooled), lines: bytes.subarray(head + 1, end + 1) }
    } catch {
      return undefined
    }
  }

  /** Removes a file that was delivered. */
  async remove({ name }: SealedFile): Promise<void> {
    const at = this.#sealed.findIndex((file) => file.name === name)
    if (at >= 0) this.#sealed.splice(at, 1)
    this.#resize(name, 0)
    await rm(join(this.#options.folder, name), { force: true })
  }

  /** Removes a file that cannot be delivered. */
  async drop(file: SealedFile): Promise<number> {
    const lines = countLines((await this.read(file))?.lines ?? Buffer.alloc(0))
    await this.remove(file)
    this.#options.onDropped(lines)
    return lines
  }

  /** Lines may be added while a file of the same name is sealed. */
  #fileOf(name: string): OpenFile {
    const known = this.#open.get(name)
    if (known) return known
    const file = { since: performance.now(), bytes: 0 }
    this.#open.set(name, file)
    return file
  }

  #isDue({ since, bytes }: OpenFile): boolean {
    return bytes >= FILE_BYTES || performance.now() - since >= this.#options.intervalMs
  }

  async #write(name: string, { lines, bytes, bucket, logging }: Buffered): Promise<void> {
    this.#bufferedBytes -= bytes
    const file = this.#fileOf(name)
    const head = file.bytes === 0 ? `${JSON.stringify({ bucket, logging } satisfies Spooled)}\n` : ''
    const content = Buffer.from(`${head}${lines.join('\n')}\n`)
    try {
      const handle = await open(join(this.#options.folder, name), 'a', MODE)
      try {
        await writeWhole(handle, content, file.bytes)
      } finally {
        await handle.close()
      }
      file.bytes += content.length
      this.#resize(name, file.bytes)
    } catch (err) {
      if (file.bytes === 0) this.#open.delete(name)
      this.#options.onDropped(lines.length)
      this.#options.log.error({ err, bucket, lines: lines.length }, 'lines of the access log of a bucket are lost')
    }
  }

  async #seal(name: string): Promise<void> {
    const sealed = `${name.slice(0, -OPEN.length)}+${stampOf(new Date())}+${uniqueText()}${SEALED}`
    try {
      const { folder } = this.#options
      await rename(join(folder, name), join(folder, sealed))
    } catch (err) {
      // It stays open, and the next attempt may succeed.
      this.#options.log.error({ err }, 'a file of access logs cannot be closed')
      return
    }
    const { bytes = 0 } = this.#open.get(name) ?? {}
    this.#open.delete(name)
    this.#resize(name, 0)
    this.#addSealed(sealed, bytes)
  }

  #addSealed(name: string, bytes: number): void {
    const [, day = '', place = '', time = '', unique = ''] = name.slice(0, -SEALED.length).split('+')
    this.#sealed.push({ name, place, day, time, unique })
    this.#resize(name, bytes)
  }

  #resize(name: string, bytes: number): void {
    this.#fileBytes += bytes - (this.#sizes.get(name) ?? 0)
    if (bytes === 0) this.#sizes.delete(name)
    else this.#sizes.set(name, bytes)
  }

  /** Drops the oldest files: what can be delivered, is not old. */
  async #makeRoom(): Promise<void> {
    const { maxBytes, log } = this.#options
    for (let oldest = this.#sealed[0]; oldest && this.#fileBytes > maxBytes; oldest = this.#sealed[0]) {
      const { bucket } = (await this.read(oldest)) ?? {}
      const lines = await this.drop(oldest)
      log.warn({ bucket, lines }, 'dropped an access log that could not be delivered: too many wait')
    }
  }

  async #takeOver(name: string): Promise<void> {
    const { size } = await stat(join(this.#options.folder, name))
    if (name.endsWith(SEALED)) return this.#addSealed(name, size)
    if (!name.endsWith(OPEN)) return
    this.#open.set(name, { since: 0, bytes: size })
    this.#resize(name, size)
    await this.#seal(name)
  }
}

const LINE_FEED = 10

export function countLines(lines: Buffer): number {
  let count = 0
  for (let at = lines.indexOf(LINE_FEED); at >= 0; at = lines.indexOf(LINE_FEED, at + 1)) count++
  return count
}

/** Appends everything or nothing, unless the process dies. */
async function writeWhole(handle: FileHandle, content: Buffer, before: number): Promise<void> {
  try {
    for (let from = 0; from < content.length; ) from += (await handle.write(content, from)).bytesWritten
  } catch (error) {
    await handle.truncate(before).catch(() => {})
    throw error
  }
}

const places = new WeakMap<LoggingConfiguration, string>()

/** The settings return the same object for a while. */
function placeOf(logging: LoggingConfiguration): string {
  const known = places.get(logging)
  if (known !== undefined) return known
  const made = createHash('sha256').update(JSON.stringify(logging)).digest('hex').slice(0, 16)
  places.set(logging, made)
  return made
}

/** `2026-11-23-01-02-03` */
export function stampOf(time: Date): string {
  return time.toISOString().slice(0, 19).replace(/[T:]/g, '-')
}

/** A text like those of S3: 16 hexadecimal digits. */
function uniqueText(): string {
  return randomBytes(8).toString('hex').toUpperCase()
}
