import type { Bound } from './bound.js'
import type { Level, LevelView } from './level.js'
import type { RawEntry } from './list-entry.js'

/** Reads one level in order, part after part when it is too large to be held at once. */
export class LevelCursor {
  /** As the gateway was asked for it. */
  readonly prefix: string
  readonly #read: (bound: Bound) => Promise<Level>
  #level: Level
  #view: LevelView
  #last: RawEntry | undefined
  /** Where reading goes on when what is held is used up. */
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

  /** Goes on from the bound, never back. */
  seek(bound: Bound): void {
    this.#resume = bound
    this.#view.seek(bound)
  }

  nextPrefixes(limit: number): string[] {
    return this.#view.nextPrefixes(limit)
  }

  /** A part may end between an object and the prefix of the same name, so the next one begins with that name again. */
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
