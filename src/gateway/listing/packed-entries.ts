import { setImmediate } from 'node:timers/promises'
import { compareUtf8 } from '../../../common/byte-order.js'
import type { RawEntry } from './listing-scanner.js'

/**
 * The first slab doubles in size between these two limits, so that small levels stay small. All other slabs have the
 * full size.
 */
const FIRST_BYTES = 512
const SLAB_BYTES = 1024 * 1024

/** Size of one offset in `#offsets`, bytes. */
const OFFSET_BYTES = 8

/**
 * Keeps the entries of a listing in one buffer, in about a third of the memory that objects take. Entries are appended
 * in any order and sorted once; entries that arrive sorted, as most do, cost nothing to sort.
 */
export class PackedEntries {
  readonly #isPrefix: boolean
  /** Many entries share a few types. */
  readonly #types: string[] = []
  readonly #typeIndex = new Map<string, number>()
  readonly #slabs: Buffer[] = [Buffer.allocUnsafeSlow(FIRST_BYTES)]
  /** Used bytes of the last slab. */
  #used = 0
  /** Number of the slab times SLAB_BYTES, plus the position in it. */
  #offsets: number[] = []
  #lastName: string | undefined
  #sorted = true

  constructor(isPrefix: boolean) {
    this.#isPrefix = isPrefix
  }

  get count(): number {
    return this.#offsets.length
  }

  /** Memory used, bytes. */
  get bytes(): number {
    const last = this.#slabs.length - 1
    return last * SLAB_BYTES + this.#lastSlab().length + this.#offsets.length * OFFSET_BYTES
  }

  add(entry: RawEntry): void {
    if (this.#lastName !== undefined && compareUtf8(entry.name, this.#lastName) <= 0) this.#sorted = false
    this.#lastName = entry.name
    const { name, size, lastModified, etag = '', generation = '' } = entry
    const details = `${size}\n${lastModified}\n${this.#type(entry.contentType)}\n${etag}\n${generation}`
    const slab = this.#roomFor(4 + 3 * (name.length + details.length))
    const at = this.#used
    const nameBytes = slab.write(name, at + 4)
    const detailBytes = slab.write(details, at + 4 + nameBytes, 'latin1')
    slab.writeUInt16LE(nameBytes, at)
    slab.writeUInt16LE(detailBytes, at + 2)
    this.#used = at + 4 + nameBytes + detailBytes
    this.#offsets.push((this.#slabs.length - 1) * SLAB_BYTES + at)
  }

  /**
   * Called after the last `add` and before any read. Sorts in UTF-8 byte order, removes duplicate names and frees
   * unused memory.
   */
  async seal(): Promise<void> {
    if (!this.#sorted) {
      const names = this.#offsets.map((_, i) => this.nameAt(i))
      const order = await sortInSlices(names.length, (a, b) => compareUtf8(names[a] as string, names[b] as string))
      const distinct = order.filter((index, i) => i === 0 || names[index] !== names[order[i - 1] as number])
      this.#offsets = Array.from(distinct, (index) => this.#offsets[index] as number)
      this.#sorted = true
    }
    const exact = Buffer.allocUnsafeSlow(this.#used)
    this.#lastSlab().copy(exact, 0, 0, this.#used)
    this.#slabs[this.#slabs.length - 1] = exact
  }

  nameAt(index: number): string {
    const [slab, at] = this.#place(index)
    return slab.toString('utf8', at + 4, at + 4 + slab.readUInt16LE(at))
  }

  at(index: number): RawEntry {
    const [slab, at] = this.#place(index)
    const nameEnd = at + 4 + slab.readUInt16LE(at)
    const details = slab.toString('latin1', nameEnd, nameEnd + slab.readUInt16LE(at + 2)).split('\n')
    const [size = '', lastModified = '', type = '', etag = '', generation = ''] = details
    return {
      name: slab.toString('utf8', at + 4, nameEnd),
      size: Number(size),
      lastModified,
      contentType: this.#types[Number(type)] ?? '',
      isPrefix: this.#isPrefix,
      ...(etag === '' ? {} : { etag }),
      ...(generation === '' ? {} : { generation }),
    }
  }

  /** Index of the first entry beyond the bound; `count` when there is none. */
  seek(bound: Bound): number {
    let low = 0
    let high = this.#offsets.length
    while (low < high) {
      const middle = (low + high) >>> 1
      if (admits(bound, this.nameAt(middle))) high = middle
      else low = middle + 1
    }
    return low
  }

  #type(contentType: string): number {
    const known = this.#typeIndex.get(contentType)
    if (known !== undefined) return known
    this.#typeIndex.set(contentType, this.#types.length)
    return this.#types.push(contentType) - 1
  }

  #place(index: number): [slab: Buffer, at: number] {
    const offset = this.#offsets[index] as number
    return [this.#slabs[Math.floor(offset / SLAB_BYTES)] as Buffer, offset % SLAB_BYTES]
  }

  #lastSlab(): Buffer {
    return this.#slabs[this.#slabs.length - 1] as Buffer
  }

  /** The last slab, with this many bytes free. An entry has fewer than SLAB_BYTES. */
  #roomFor(bytes: number): Buffer {
    const last = this.#lastSlab()
    if (this.#used + bytes <= last.length) return last
    const isFirst = this.#slabs.length === 1
    if (isFirst && this.#used + bytes <= SLAB_BYTES) {
      const larger = Buffer.allocUnsafeSlow(Math.min(SLAB_BYTES, Math.max(last.length * 2, this.#used + bytes)))
      last.copy(larger, 0, 0, this.#used)
      this.#slabs[0] = larger
      return larger
    }
    const next = Buffer.allocUnsafeSlow(SLAB_BYTES)
    this.#slabs.push(next)
    this.#used = 0
    return next
  }
}

/** Elements that are sorted or merged before the event loop continues: a few milliseconds of work. */
const SLICE = 8192

/**
 * The numbers 0 to count-1 in the order of `compare`. A merge sort that lets the event loop continue between slices.
 */
async function sortInSlices(count: number, compare: (a: number, b: number) => number): Promise<Uint32Array> {
  let from = Uint32Array.from({ length: count }, (_, i) => i)
  for (let low = 0; low < count; low += SLICE) {
    from.subarray(low, low + SLICE).sort(compare)
    await setImmediate()
  }
  let to = new Uint32Array(count)
  for (let width = SLICE; width < count; width *= 2) {
    for (let low = 0; low < count; low += 2 * width) {
      const middle = Math.min(low + width, count)
      await merge(from.subarray(low, middle), from.subarray(middle, low + 2 * width), to.subarray(low), compare)
    }
    ;[from, to] = [to, from]
  }
  return from
}

async function merge(
  left: Uint32Array,
  right: Uint32Array,
  out: Uint32Array,
  compare: (a: number, b: number) => number,
): Promise<void> {
  let l = 0
  let r = 0
  for (let n = 0; n < left.length + right.length; n++) {
    const takeLeft = r >= right.length || (l < left.length && compare(left[l] as number, right[r] as number) <= 0)
    out[n] = (takeLeft ? left[l++] : right[r++]) as number
    if (n % SLICE === SLICE - 1) await setImmediate()
  }
}

/** A position in the order of names at which reading begins. */
export type Bound =
  /** At `name` itself. */
  | { readonly kind: 'from'; readonly name: string }
  /** After `name`. */
  | { readonly kind: 'after'; readonly name: string }
  /** After everything that begins with `name`. */
  | { readonly kind: 'past'; readonly name: string }

export const start: Bound = { kind: 'from', name: '' }

/** True for names beyond the bound. In sorted names all of them come last, so that a binary search finds the first. */
export function admits(bound: Bound, name: string): boolean {
  const order = compareUtf8(name, bound.name)
  if (bound.kind === 'from') return order >= 0
  return order > 0 && !(bound.kind === 'past' && name.startsWith(bound.name))
}
