import type { StatementSyncInstance } from '@photostructure/sqlite'

/** Most rows of a statement that are kept. */
const MAX_ROWS = 1000

/**
 * Tells whether a database has changed since its rows were read. To ask SQLite takes a fifth of what it takes to read a
 * row, and one answer holds until the present callback of the event loop and its promises end: no later request, and no
 * news of another process, can come before that.
 */
export class Changes {
  readonly #version: StatementSyncInstance
  #known: unknown
  #isSure = false
  readonly #doubt = () => {
    this.#isSure = false
  }

  /** @param version returns another number after each commit of any other connection: `PRAGMA data_version` */
  constructor(version: StatementSyncInstance) {
    version.setReturnArrays(true)
    this.#version = version
  }

  /** Another value after each change. */
  get state(): unknown {
    if (this.#isSure) return this.#known
    const [version] = this.#version.get() as unknown as readonly unknown[]
    this.#known = version
    this.#isSure = true
    process.nextTick(this.#doubt)
    return version
  }

  /** To be called after a commit of this process. */
  mayHaveChanged(): void {
    this.#isSure = false
  }
}

/** Rows that a statement has read, by its parameter, as long as nothing has changed. */
export class KeptRows {
  readonly #read: (value: string | number) => object | undefined
  readonly #changes: Changes
  readonly #rows = new Map<string | number, object>()
  #state: unknown

  constructor(changes: Changes, read: (value: string | number) => object | undefined) {
    this.#changes = changes
    this.#read = read
  }

  get(value: string | number): object | undefined {
    const { state } = this.#changes
    if (state !== this.#state || this.#rows.size > MAX_ROWS) this.#rows.clear()
    this.#state = state
    const kept = this.#rows.get(value)
    if (kept !== undefined) return kept
    const row = this.#read(value)
    if (row !== undefined) this.#rows.set(value, row)
    return row
  }
}
