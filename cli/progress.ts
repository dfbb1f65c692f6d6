const UNITS = ['bytes', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB']
/** Least pause between two texts, ms. */
const PAUSE_MS = 100

/** A line on standard error that says how far a command is, if that is a terminal; nothing elsewhere. */
export class ProgressLine {
  readonly #terminal = process.stderr.isTTY === true
  #shownAt = 0
  #shown = false

  /** Replaces the text, unless it was replaced just now. */
  show(text: () => string): void {
    const now = performance.now()
    if (!this.#terminal || (this.#shown && now - this.#shownAt < PAUSE_MS)) return
    this.#shown = true
    this.#shownAt = now
    // A terminal may not know its size.
    const width = (process.stderr.columns || 80) - 1
    process.stderr.write(`\r${[...text()].slice(0, width).join('')}\u001b[K`)
  }

  /** Removes the line, before other output. */
  clear(): void {
    if (this.#shown) process.stderr.write('\r\u001b[K')
    this.#shown = false
  }
}

/** `1.5 MiB of 3.0 MiB, 50 %` */
export function partText(done: number, total: number): string {
  return `${bytesText(done)} of ${bytesText(total)}, ${percentOf(done, total)} %`
}

/** Rounded down: 100 only at the end. */
function percentOf(done: number, total: number): number {
  return total > 0 ? Math.floor((Math.min(done, total) / total) * 100) : 100
}

/** Bytes as people read them: `1.5 MiB`. */
export function bytesText(bytes: number): string {
  const power = Math.min(Math.floor(Math.log2(Math.max(bytes, 1)) / 10), UNITS.length - 1)
  return `${power === 0 ? bytes : (bytes / 1024 ** power).toFixed(1)} ${UNITS[power]}`
}
