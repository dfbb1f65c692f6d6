import { type FileHandle, open } from 'node:fs/promises'

const MODE = 0o600
/** Bounds the memory of one write. */
const LINES_AT_ONCE = 256

export interface LineFileOptions {
  readonly path: string
  /** Each line is on the disk when `write` resolves. Default false. */
  readonly durable?: boolean
}

/**
 * A file that lines are appended to. Each batch of lines is one write at the end of the file, so that those of several
 * processes do not mix.
 */
export class LineFile {
  readonly #options: LineFileOptions
  #handle: FileHandle
  #waiting: string[] = []
  #next: Promise<void> | undefined
  #last: Promise<void> = Promise.resolve()

  private constructor(options: LineFileOptions, handle: FileHandle) {
    this.#options = options
    this.#handle = handle
  }

  /** Rejects with the system error. */
  static async open(options: LineFileOptions): Promise<LineFile> {
    return new LineFile(options, await open(options.path, 'a', MODE))
  }

  /** Appends a line, which must not contain a line feed. Rejects with the system error. */
  write(line: string): Promise<void> {
    this.#waiting.push(`${line}\n`)
    // What comes during a write is written by the next one.
    this.#next ??= this.#last.catch(() => {}).then(() => this.#flush())
    this.#last = this.#next
    return this.#next
  }

  /** Opens the path again: a program that rotates logs has moved the file. */
  async reopen(): Promise<void> {
    const handle = await open(this.#options.path, 'a', MODE)
    const former = this.#handle
    this.#handle = handle
    await this.#last.catch(() => {})
    await former.close()
  }

  async close(): Promise<void> {
    await this.#last.catch(() => {})
    await this.#handle.close()
  }

  async #flush(): Promise<void> {
    const lines = this.#waiting
    this.#waiting = []
    this.#next = undefined
    const handle = this.#handle
    for (let from = 0; from < lines.length; from += LINES_AT_ONCE)
      await append(handle, Buffer.from(lines.slice(from, from + LINES_AT_ONCE).join('')))
    if (this.#options.durable) await handle.datasync()
  }
}

/** One call of the system unless the disk is full: calls of several processes do not mix. */
async function append(handle: FileHandle, bytes: Buffer): Promise<void> {
  for (let from = 0; from < bytes.length; ) {
    const { bytesWritten } = await handle.write(bytes, from)
    from += bytesWritten
  }
}
