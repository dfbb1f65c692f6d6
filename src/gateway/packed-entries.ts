import { compareUtf8 } from '../common/byte-order.js'
import { admits, type Bound } from './bound.js'
import type { RawEntry } from './list-entry.js'
import { sortInSlices } from './sort-in-slices.js'

const FIRST_BYTES = 1024
/** Bytes of one offset in `#offsets`. */
const OFFSET_BYTES = 8

/**
 * Entries of a listing in about a third of the memory that objects take: names and details in one buffer. Appended in any order, then sorted once;
 * entries that come in order, as they mostly do, cost nothing to sort.
 */
export class PackedEntries {
  readonly #isPrefix: boolean
  /** Few types are shared by many entries. */
  readonly #types: string[] = []
  readonly #typeIndex = new Map<string, number>()
  #buffer = Buffer.allocUnsafeSlow(FIRST_BYTES)
  #used = 0
  #offsets: number[] = []
  #lastName: string | undefined
  #sorted = true

  constructor(isPrefix: boolean) {
    this.#isPrefix = isPrefix
  }

  get count(): number {
    return this.#offsets.length
  }

  /** Memory held, bytes. */
  get bytes(): number {
    return this.#buffer.length + this.#offsets.length * OFFSET_BYTES
  }

  add(entry: RawEntry): void {
    if (this.#lastName !== undefined && compareUtf8(entry.name, this.#lastName) <= 0) this.#sorted = false
    this.#lastName = entry.name
    const details = [
      entry.size,
      entry.lastModified,
      this.#type(entry.contentType),
      entry.etag ?? '',
      entry.generation ?? '',
    ].join('\n')
    this.#reserve(4 + 3 * (entry.name.length + details.length))
    const at = this.#used
    const nameBytes = this.#buffer.write(entry.name, at + 4)
    const detailBytes = this.#buffer.write(details, at + 4 + nameBytes)
    this.#buffer.writeUInt16LE(nameBytes, at)
    this.#buffer.writeUInt16LE(detailBytes, at + 2)
    this.#used = at + 4 + nameBytes + detailBytes
    this.#offsets.push(at)
  }

  /** To be called after the last `add`, before anything is read: UTF-8 byte order, each name once, no memory to spare. */
  async seal(): Promise<void> {
    if (!this.#sorted) {
      const names = this.#offsets.map((_, i) => this.nameAt(i))
      const order = await sortInSlices(names.length, (a, b) => compareUtf8(names[a] as string, names[b] as string))
      const distinct = order.filter((index, i) => i === 0 || names[index] !== names[order[i - 1] as number])
      this.#offsets = Array.from(distinct, (index) => this.#offsets[index] as number)
      this.#sorted = true
    }
    const exact = Buffer.allocUnsafeSlow(this.#used)
    this.#buffer.copy(exact, 0, 0, this.#used)
    this.#buffer = exact
  }

  nameAt(index: number): string {
    const at = this.#offsets[index] as number
    return this.#buffer.toString('utf8', at + 4, at + 4 + this.#buffer.readUInt16LE(at))
  }

  at(index: number): RawEntry {
    const at = this.#offsets[index] as number
    const nameEnd = at + 4 + this.#buffer.readUInt16LE(at)
    const details = this.#buffer.toString('utf8', nameEnd, nameEnd + this.#buffer.readUInt16LE(at + 2)).split('\n')
    const [size = '', lastModified = '', type = '', etag = '', generation = ''] = details
    return {
      name: this.#buffer.toString('utf8', at + 4, nameEnd),
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

  #reserve(bytes: number): void {
    if (this.#used + bytes <= this.#buffer.length) return
    const larger = Buffer.allocUnsafeSlow(Math.max(this.#buffer.length * 2, this.#used + bytes))
    this.#buffer.copy(larger, 0, 0, this.#used)
    this.#buffer = larger
  }
}
