import { compareUtf8 } from '../../../common/byte-order.js'
import { nonsense } from '../errors.js'
import type { ListablePrefix } from '../keys.js'
import { type Level, LevelCursor } from './level.js'
import type { RawEntry } from './listing-scanner.js'
import { marker } from './look-up.js'
import { type Bound, start } from './packed-entries.js'

/** Most levels read ahead, each with one call to the gateway. */
const MAX_READ_AHEAD = 8
/** Longest path on a gateway that keeps objects as files, bytes (PATH_MAX). Deeper folders would never end. */
const MAX_PATH_BYTES = 4096
/** Most prefixes in one query for markers. */
const MAX_MARKERS = 200

export interface WalkSource {
  level(prefix: string, bound: Bound): Promise<Level>
  /** Tells for each prefix whether a folder object of that name was stored that the gateway's listing does not show. */
  markers(prefixes: string[]): Promise<boolean[]>
  /** The folder object named like the walk's own prefix, if it exists. */
  folderItself(prefix: string, level: Level): Promise<RawEntry | undefined>
}

/**
 * Reads all keys with a prefix, in UTF-8 byte order, from a gateway that lists one level at a time. Descending into
 * `a/` at its place among its siblings yields the order of whole keys: keys that begin with `a/` sort against all
 * others as `a/` does.
 */
export class FlatWalk {
  readonly #source: WalkSource
  readonly #prefix: string
  readonly #within: ListablePrefix
  readonly #after: string
  readonly #readAhead: number
  /** Cursors from the walk's own level down to the present one. */
  #path: LevelCursor[] | undefined
  #passOver: string | undefined
  #lastName: string | undefined
  #marks = new Map<string, boolean>()
  #ahead = new Map<string, Promise<Level>>()

  /**
   * Reads keys strictly after `after`.
   * @param wanted number of keys that the caller will ask for
   */
  constructor(source: WalkSource, prefix: string, within: ListablePrefix, after: string, wanted: number) {
    this.#source = source
    this.#prefix = prefix
    this.#within = within
    this.#after = after
    this.#readAhead = wanted > 2 ? MAX_READ_AHEAD : 0
  }

  /** The next object; undefined at the end. Throws S3Error. */
  async next(): Promise<RawEntry | undefined> {
    for (;;) {
      const entry = await this.#step()
      if (!entry) return undefined
      if (entry.isPrefix || entry.name === this.#lastName || !this.#isWanted(entry.name)) continue
      this.#lastName = entry.name
      return entry
    }
  }

  /** Skips every key that begins with `group`, which is a prefix of the last key. */
  seekPast(group: string): void {
    this.#passOver = group
    this.#ahead.clear()
    const path = this.#path ?? []
    while (path.length > 0 && (path.at(-1) as LevelCursor).prefix.startsWith(group)) path.pop()
    path.at(-1)?.seek({ kind: 'past', name: group })
  }

  /** The next entry, which may be a prefix to descend into or an unwanted key. */
  async #step(): Promise<RawEntry | undefined> {
    if (!this.#path) return this.#enter()
    const cursor = this.#path.at(-1)
    if (!cursor) return undefined
    const entry = await cursor.next()
    if (!entry) {
      this.#path.pop()
      return this.#step()
    }
    if (!entry.name.endsWith('/') || entry.name === cursor.prefix || this.#isPassedOver(entry.name)) return entry
    if (!this.#mayHold(entry.name)) return entry
    const isRecorded = entry.isPrefix && this.#isWanted(entry.name) && (await this.#isMarker(entry.name, cursor))
    const level = await this.#descend(entry.name, cursor)
    // An empty directory is a folder object: see `lookUpFolder`.
    return isRecorded || (entry.isPrefix && level.complete && level.count === 0) ? marker(entry.name) : entry
  }

  /** Opens the walk's own level. */
  async #enter(): Promise<RawEntry | undefined> {
    const { ask } = this.#within
    const bound = boundIn(ask, this.#after)
    const level = await this.#source.level(ask, bound)
    this.#path = [this.#cursor(ask, level, bound)]
    const wanted = this.#prefix.endsWith('/') && compareUtf8(this.#prefix, this.#after) > 0
    return (wanted ? await this.#source.folderItself(this.#prefix, level) : undefined) ?? this.#step()
  }

  async #descend(prefix: string, from: LevelCursor): Promise<Level> {
    if (Buffer.byteLength(prefix) > MAX_PATH_BYTES) throw nonsense('answered web.ListObjects with folders without end')
    const bound = boundIn(prefix, this.#after)
    const reading = this.#ahead.get(prefix) ?? this.#source.level(prefix, bound)
    this.#ahead.delete(prefix)
    if (this.#readAhead > 0) this.#readOn(from)
    const level = await reading
    this.#path?.push(this.#cursor(prefix, level, bound))
    return level
  }

  /** Reads ahead: a tree of many small folders would otherwise cost one round trip each, in sequence. */
  #readOn(cursor: LevelCursor): void {
    for (const prefix of cursor.nextPrefixes(this.#readAhead)) {
      if (this.#ahead.has(prefix) || this.#ahead.size >= this.#readAhead) continue
      const reading = this.#source.level(prefix, start)
      // The call that uses the level sees the error; possibly no call does.
      reading.catch(() => {})
      this.#ahead.set(prefix, reading)
    }
  }

  #cursor(prefix: string, level: Level, bound: Bound): LevelCursor {
    return new LevelCursor(prefix, (from) => this.#source.level(prefix, from), level, bound)
  }

  async #isMarker(prefix: string, cursor: LevelCursor): Promise<boolean> {
    const known = this.#marks.get(prefix)
    if (known !== undefined) return known
    const prefixes = [prefix, ...cursor.nextPrefixes(MAX_MARKERS - 1)]
    const found = await this.#source.markers(prefixes)
    this.#marks = new Map(prefixes.map((name, i) => [name, found[i] === true]))
    return found[0] === true
  }

  #isWanted(name: string): boolean {
    return name.startsWith(this.#prefix) && !this.#isPassedOver(name) && compareUtf8(name, this.#after) > 0
  }

  #isPassedOver(name: string): boolean {
    return this.#passOver !== undefined && name.startsWith(this.#passOver)
  }

  /**
   * True when keys below a folder can have the walk's prefix. False for siblings, when the level read is wider than the
   * prefix.
   */
  #mayHold(folder: string): boolean {
    return folder.startsWith(this.#prefix) || this.#prefix.startsWith(folder)
  }
}

/** The start within the level `prefix` when only keys strictly after `after` are wanted. */
function boundIn(prefix: string, after: string): Bound {
  if (!after.startsWith(prefix)) return compareUtf8(after, prefix) < 0 ? start : { kind: 'past', name: prefix }
  const slash = after.indexOf('/', prefix.length)
  // Starts at the folder that contains `after`, because later keys may lie below it.
  if (slash >= 0) return { kind: 'from', name: after.slice(0, slash + 1) }
  return after === '' ? start : { kind: 'after', name: after }
}
