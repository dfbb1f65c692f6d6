import type { EndStatus } from './record.js'

/** Facts about a job that are known without reading its record. */
export interface IndexEntry {
  readonly kind: string
  readonly accessKeyId: string
  /** Absent until the job ends. */
  readonly end?: { readonly status: EndStatus /** ms since 1970 */; readonly at: number }
}

/** Ids of all jobs in order, in memory: about 200 bytes per job. */
export class JobIndex {
  readonly #entries = new Map<string, IndexEntry>()
  readonly #texts = new Map<string, string>()
  /** Ascending. */
  readonly #ids: string[] = []

  get size(): number {
    return this.#entries.size
  }

  get(id: string): IndexEntry | undefined {
    return this.#entries.get(id)
  }

  set(id: string, { kind, accessKeyId, end }: IndexEntry): void {
    if (!this.#entries.has(id)) this.#insert(id)
    this.#entries.set(id, { kind: this.#once(kind), accessKeyId: this.#once(accessKeyId), ...(end && { end }) })
  }

  delete(id: string): void {
    if (this.#entries.delete(id)) this.#ids.splice(lowerBound(this.#ids, id), 1)
  }

  /**
   * Newest first, starting before `before`, which need not exist. Jobs that are added or removed during the iteration
   * may or may not appear.
   */
  *newestFirst(before?: string): Generator<[id: string, entry: IndexEntry]> {
    let at = before === undefined ? this.#ids.length : lowerBound(this.#ids, before)
    while (at > 0) {
      const id = this.#ids[at - 1] as string
      const entry = this.#entries.get(id)
      if (entry) yield [id, entry]
      at = lowerBound(this.#ids, id)
    }
  }

  *oldestFirst(): Generator<[id: string, entry: IndexEntry]> {
    for (const id of [...this.#ids]) {
      const entry = this.#entries.get(id)
      if (entry) yield [id, entry]
    }
  }

  /** A new id nearly always goes to the end. */
  #insert(id: string): void {
    const last = this.#ids.at(-1)
    if (last === undefined || id > last) this.#ids.push(id)
    else this.#ids.splice(lowerBound(this.#ids, id), 0, id)
  }

  /** Interns a string, to save memory. */
  #once(text: string): string {
    const known = this.#texts.get(text)
    if (known !== undefined) return known
    this.#texts.set(text, text)
    return text
  }
}

/** Number of ids that are less than `id`. */
function lowerBound(ids: readonly string[], id: string): number {
  let low = 0
  let high = ids.length
  while (low < high) {
    const middle = (low + high) >> 1
    if ((ids[middle] as string) < id) low = middle + 1
    else high = middle
  }
  return low
}
