import { writeSync } from 'node:fs'
import { type FileHandle, open, stat } from 'node:fs/promises'
import { setTimeout } from 'node:timers/promises'

const MODE = 0o600
/**
 * Length of a write, in UTF-16 code units, at which no further line joins it: bounds its memory, of which a line has at
 * most what the bound of lines that wait leaves it.
 */
const WRITE_LENGTH = 256 * 1024
const MAX_WAITING_BYTES = 16 * 1024 * 1024
const LINE_FEED = 10
/** A write that pauses for longer is cut short. */
const WRITING_MS = 20

interface LineFileOptions {
  readonly path: string
  /** Each line is on the disk when `write` resolves. Default false. */
  readonly durable?: boolean
  /** Most bytes of lines that wait for the disk; further lines are refused. Default 16 MiB. */
  readonly maxWaitingBytes?: number
}

interface Batch {
  readonly lines: string[]
  /** Number of lines that were handed to the system. */
  begun: number
  bytes: number
  durable: boolean
  readonly written: Promise<void>
}

/**
 * A file that lines are appended to. Each batch of lines is one write at the end of the file, so that those of several
 * processes do not mix. A line that a full disk or a crash has cut short stays alone: the next one begins a line.
 */
export class LineFile {
  readonly #options: LineFileOptions
  #handle: FileHandle
  #next: Batch | undefined
  /** The batch whose lines are being written. */
  #running: Batch | undefined
  #last: Promise<void> = Promise.resolve()
  #waitingBytes = 0
  /** True if the file may end within a line. */
  #cut = true
  readonly #atExit = () => this.#writeWaiting()

  private constructor(options: LineFileOptions, handle: FileHandle) {
    this.#options = options
    this.#handle = handle
  }

  /** Rejects with the system error. */
  static async open(options: LineFileOptions): Promise<LineFile> {
    return new LineFile(options, await open(options.path, 'a', MODE))
  }

  /**
   * Appends a line, which must not contain a line feed. Rejects with the system error, and at once if too much waits
   * for a slow disk.
   */
  write(line: string, durable = this.#options.durable ?? false): Promise<void> {
    return this.#append(`${line}\n`, durable)
  }

  /** The same for several lines, which are written or refused together. */
  writeAll(lines: readonly string[]): Promise<void> {
    return this.#append(textOf(lines), this.#options.durable ?? false)
  }

  /** Appends lines before it returns, for a process that ends. Throws the system error. */
  writeNow(lines: readonly string[]): void {
    writeWhole(this.#handle.fd, textOf(lines))
  }

  /** What waits for the disk when the process ends. */
  #writeWaiting(): void {
    const waiting = [...(this.#running?.lines.slice(this.#running.begun) ?? []), ...(this.#next?.lines ?? [])]
    try {
      writeWhole(this.#handle.fd, waiting.join(''))
    } catch {
      // The disk is full: nothing can be told any more.
    }
  }

  #append(text: string, durable: boolean): Promise<void> {
    const size = Buffer.byteLength(text)
    const { path, maxWaitingBytes = MAX_WAITING_BYTES } = this.#options
    if (this.#waitingBytes > 0 && this.#waitingBytes + size > maxWaitingBytes)
      return Promise.reject(new Error(`too many lines wait to be written to ${path}`))
    if (this.#waitingBytes === 0) process.once('exit', this.#atExit)
    this.#waitingBytes += size
    // What comes during a write is written by the next one.
    const batch = this.#next ?? this.#begin()
    batch.lines.push(text)
    batch.bytes += size
    batch.durable ||= durable
    return batch.written
  }

  /** Opens the path again: a program that rotates logs has moved the file. */
  async reopen(): Promise<void> {
    const handle = await open(this.#options.path, 'a', MODE)
    const former = this.#handle
    this.#handle = handle
    this.#cut = true
    await this.#last.catch(() => {})
    await former.close()
  }

  async close(): Promise<void> {
    await this.#last.catch(() => {})
    await this.#handle.close()
  }

  #begin(): Batch {
    const written = this.#last.catch(() => {}).then(() => this.#flush(batch))
    const batch: Batch = { lines: [], begun: 0, bytes: 0, durable: false, written }
    this.#next = batch
    this.#last = written
    return batch
  }

  async #flush(batch: Batch): Promise<void> {
    this.#next = undefined
    this.#running = batch
    const handle = this.#handle
    const { lines } = batch
    try {
      if (this.#cut) {
        if (await endsWithinLine(this.#options.path, handle)) lines.unshift('\n')
        this.#cut = false
      }
      while (batch.begun < lines.length) {
        let part = ''
        while (batch.begun < lines.length && part.length < WRITE_LENGTH) part += lines[batch.begun++]
        await append(handle, Buffer.from(part))
      }
      if (batch.durable) await handle.datasync()
    } catch (error) {
      this.#cut = true
      throw error
    } finally {
      this.#running = undefined
      this.#waitingBytes -= batch.bytes
      if (this.#waitingBytes === 0) process.off('exit', this.#atExit)
    }
  }
}

function textOf(lines: readonly string[]): string {
  return `${lines.join('\n')}\n`
}

/** Throws the system error. */
function writeWhole(fd: number, text: string): void {
  const bytes = Buffer.from(text)
  for (let from = 0; from < bytes.length; ) from += writeSync(fd, bytes, from)
}

/** One call of the system unless the disk is full: calls of several processes do not mix. */
async function append(handle: FileHandle, bytes: Buffer): Promise<void> {
  for (let from = 0; from < bytes.length; ) {
    const { bytesWritten } = await handle.write(bytes, from)
    from += bytesWritten
  }
}

/** False for what is no plain file, and for a file that this process may not read. */
async function endsWithinLine(path: string, written: FileHandle): Promise<boolean> {
  const { size, ino } = await written.stat()
  if (size === 0 || !(await stat(path).catch(() => undefined))?.isFile()) return false
  const handle = await open(path, 'r').catch(() => undefined)
  if (!handle) return false
  try {
    return (await handle.stat()).ino === ino && (await isCut(handle))
  } finally {
    await handle.close()
  }
}

async function isCut(handle: FileHandle): Promise<boolean> {
  for (let seen = -1; ; ) {
    const { size } = await handle.stat()
    const last = Buffer.of(LINE_FEED)
    await handle.read(last, 0, 1, size - 1)
    if (last[0] === LINE_FEED) return false
    if (size === seen) return true
    // Another process may be writing a line.
    seen = size
    await setTimeout(WRITING_MS)
  }
}
