import { compareUtf8 } from '../../../common/byte-order.js'
import type { RawEntry } from './listing-scanner.js'
import { type Bound, PackedEntries, start } from './packed-entries.js'

/** Approximate memory of an empty level, bytes. It matters when there are many small ones. */
const OVERHEAD_BYTES = 1024

/**
 * The sorted result of one web.ListObjects call to a one-level gateway. Keeps objects and prefixes apart: gateways send
 * them as two sorted sequences, mixed in blocks, so that each needs no sorting by itself; reading merges them.
 */
export class Level {
  /** False when the level continues after the last entry held here. */
  readonly complete: boolean
  readonly #objects: PackedEntries
  readonly #prefixes: PackedEntries

  private constructor(objects: PackedEntries, prefixes: PackedEntries, complete: boolean) {
    this.#objects = objects
    this.#prefixes = prefixes
    this.complete = complete
  }

  static async seal(builder: LevelBuilder, complete: boolean): Promise<Level> {
    await builder.objects.seal()
    await builder.prefixes.seal()
    return new Level(builder.objects, builder.prefixes, complete)
  }

  /** Memory used, bytes. */
  get bytes(): number {
    return OVERHEAD_BYTES + this.#objects.bytes + this.#prefixes.bytes
  }

  /** Number of entries that are not prefixes. */
  get objects(): number {
    return this.#objects.count
  }

  get count(): number {
    return this.#objects.count + this.#prefixes.count
  }

  view(bound: Bound = start): LevelView {
    return new LevelView(this.#objects, this.#prefixes, bound)
  }
}

export class LevelBuilder {
  readonly objects = new PackedEntries(false)
  readonly prefixes = new PackedEntries(true)

  get bytes(): number {
    return this.objects.bytes + this.prefixes.bytes
  }

  add(entry: RawEntry): void {
    if (entry.isPrefix) this.prefixes.add(entry)
    else this.objects.add(entry)
  }
}

/** A position in a level. */
class LevelView {
  readonly #objects: PackedEntries
  readonly #prefixes: PackedEntries
  #object: number
  #prefix: number

  constructor(objects: PackedEntries, prefixes: PackedEntries, bound: Bound) {
    this.#objects = objects
    this.#prefixes = prefixes
    this.#object = objects.seek(bound)
    this.#prefix = prefixes.seek(bound)
  }

  /** The next entry in the order of names. An object comes before a prefix of the same name. */
  next(): RawEntry | undefined {
    const anyObject = this.#object < this.#objects.count
    const anyPrefix = this.#prefix < this.#prefixes.count
    if (anyObject && (!anyPrefix || this.#objectIsFirst())) return this.#objects.at(this.#object++)
    return anyPrefix ? this.#prefixes.at(this.#prefix++) : undefined
  }

  seek(bound: Bound): void {
    this.#object = Math.max(this.#object, this.#objects.seek(bound))
    this.#prefix = Math.max(this.#prefix, this.#prefixes.seek(bound))
  }

  /** Names of the next prefixes, at most `limit`. */
  nextPrefixes(limit: number): string[] {
    const end = Math.min(this.#prefix + limit, this.#prefixes.count)
    return Array.from({ length: Math.max(0, end - this.#prefix) }, (_, i) => this.#prefixes.nameAt(this.#prefix + i))
  }

  #objectIsFirst(): boolean {
    return compareUtf8(this.#objects.nameAt(this.#object), this.#prefixes.nameAt(this.#prefix)) <= 0
  }
}

/** Reads one level in order, in parts when it is too large for memory. */
export class LevelCursor {
  /** The prefix that the gateway is asked for. */
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
