import { compareUtf8 } from '../../../common/byte-order.js'
import { LevelBuilder } from './level.js'
import type { RawEntry } from './listing-scanner.js'
import { admits, type Bound } from './packed-entries.js'

/** Selects the first `capacity` entries beyond a bound from a level too large to keep. */
export class Selection {
  readonly #bound: Bound
  readonly #capacity: number
  /** A heap with the last name on top. */
  readonly #heap: RawEntry[] = []
  #overflowed = false

  constructor(bound: Bound, capacity: number) {
    this.#bound = bound
    this.#capacity = capacity
  }

  /** True when entries beyond the bound were dropped. */
  get overflowed(): boolean {
    return this.#overflowed
  }

  add(entry: RawEntry): void {
    if (!admits(this.#bound, entry.name)) return
    if (this.#heap.length < this.#capacity) {
      this.#heap.push(entry)
      this.#up(this.#heap.length - 1)
      return
    }
    this.#overflowed = true
    if (order(entry, this.#heap[0] as RawEntry) >= 0) return
    this.#heap[0] = entry
    this.#down()
  }

  sorted(): LevelBuilder {
    const builder = new LevelBuilder()
    for (const entry of this.#heap.sort(order)) builder.add(entry)
    return builder
  }

  #up(index: number): void {
    const heap = this.#heap
    for (let child = index; child > 0; ) {
      const parent = (child - 1) >> 1
      if (order(heap[child] as RawEntry, heap[parent] as RawEntry) <= 0) return
      swap(heap, child, parent)
      child = parent
    }
  }

  #down(): void {
    const heap = this.#heap
    for (let parent = 0; ; ) {
      const left = 2 * parent + 1
      if (left >= heap.length) return
      const right = left + 1
      const later = right < heap.length && order(heap[right] as RawEntry, heap[left] as RawEntry) > 0 ? right : left
      if (order(heap[later] as RawEntry, heap[parent] as RawEntry) <= 0) return
      swap(heap, later, parent)
      parent = later
    }
  }
}

/** An object comes before a prefix of the same name, as in LevelView. */
function order(a: RawEntry, b: RawEntry): number {
  return compareUtf8(a.name, b.name) || Number(a.isPrefix) - Number(b.isPrefix)
}

function swap(heap: RawEntry[], a: number, b: number): void {
  const kept = heap[a] as RawEntry
  heap[a] = heap[b] as RawEntry
  heap[b] = kept
}
