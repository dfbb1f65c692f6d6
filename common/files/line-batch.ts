/** Longest time that a line waits, ms. */
const LINE_BATCH_MS = 100
/** UTF-16 code units of a batch, above which it does not wait. */
const MAX_LENGTH = 64 * 1024

interface LineBatchOptions {
  /** Takes at least one line. Must not throw. */
  write(lines: readonly string[]): void
  /** The same when the process ends, before it returns. Must not throw. */
  writeNow(lines: readonly string[]): void
}

/**
 * Lines that are written together, because a call of the system for each costs more than to format it. None is lost
 * when the process ends by itself or by an error; one that is killed loses those of the last 100 ms.
 */
export class LineBatch {
  readonly #options: LineBatchOptions
  #lines: string[] = []
  #length = 0
  #timer: NodeJS.Timeout | undefined
  readonly #flush = () => this.flush()
  readonly #atExit = () => this.#take(this.#options.writeNow)

  constructor(options: LineBatchOptions) {
    this.#options = options
  }

  add(line: string): void {
    if (this.#lines.push(line) === 1) {
      this.#timer = setTimeout(this.#flush, LINE_BATCH_MS).unref()
      process.once('exit', this.#atExit)
    }
    this.#length += line.length
    if (this.#length >= MAX_LENGTH) this.flush()
  }

  /** Writes what waits. */
  flush(): void {
    this.#take(this.#options.write)
  }

  #take(write: LineBatchOptions['write']): void {
    if (this.#lines.length === 0) return
    const lines = this.#lines
    this.#lines = []
    this.#length = 0
    clearTimeout(this.#timer)
    process.off('exit', this.#atExit)
    write(lines)
  }
}
