import type { Bound } from '../bound.js'
import type { Level, LevelView } from './level.js'
import type { RawEntry } from './list-entry.js'

/** Reads one level in order, in parts when it is too large for memory. */
export class LevelCursor {
  /** As the gateway is asked for it. */
  readonly prefix: string
  readonly #read: (bound: Bound) => Promise<Level>
  #level: Level
  #view: LevelView
  #last: RawEntry | undefined
  /** Start of the next part. */
  #resume: Bound

  constructor(prefix: string, read: (bound: Bound) => Promise<Level>, first: Level, bound: Bound) {
    this.prefix = prefix
    this.#read = read
    this.#level = first
    this.#view = first.view(bound)
    this.#resume = bound
  }

  async next(): Promise<RawEntry | undefined> {
    for (;;) {
      const entry = this.#view.next()
      if (entry && this.#isNew(entry)) {
        this.#last = entry
        this.#resume = { kind: 'from', name: entry.name }
        return entry
      }
      if (!entry && !(await this.#more())) return undefined
    }
  }

  /** Continues at the bound. Never goes back. */
  seek(bound: Bound): void {
    this.#resume = bound
    this.#view.seek(bound)
  }

  nextPrefixes(limit: number): string[] {
    return this.#view.nextPrefixes(limit)
  }

  /** A part may end between an object and the prefix of the same name, so the next part starts with that name again. */
  #isNew(entry: RawEntry): boolean {
    return !this.#last || entry.name !== this.#last.name || (entry.isPrefix && !this.#last.isPrefix)
  }

  async #more(): Promise<boolean> {
    if (this.#level.complete) return false
    this.#level = await this.#read(this.#resume)
    this.#view = this.#level.view(this.#resume)
    return this.#level.count > 0
  }
}
