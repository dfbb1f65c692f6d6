import { compareUtf8 } from '../common/byte-order.js'
import type { Bound } from './bound.js'
import type { GatewayFeatures, ListQuery } from './gateway.js'
import { type ListablePrefix, listablePrefix } from './keys.js'
import type { Level } from './level.js'
import { LevelCursor } from './level-cursor.js'
import { type LevelSource, readLevel } from './level-reader.js'
import type { RawEntry } from './list-entry.js'
import { lookUp } from './look-up.js'
import { FlatWalk, marker, type WalkSource } from './walk.js'

/** Tells for each prefix whether the proxy's own records hold a folder object of that name. */
export type MarkerLookup = (bucket: string, prefixes: string[]) => Promise<boolean[]>

export interface LevelListing {
  readonly source: LevelSource
  readonly features: GatewayFeatures
  readonly isMarker: MarkerLookup | undefined
}

/** Up to `query.limit` + 1 entries of a gateway that lists one level at a time, unsorted and whole. Undefined: no key can have the prefix. */
export async function listByLevels(
  listing: LevelListing,
  bucket: string,
  query: ListQuery,
): Promise<RawEntry[] | undefined> {
  const within: ListablePrefix | undefined = listing.features.anyKey
    ? { ask: query.prefix, filter: false }
    : listablePrefix(query.prefix)
  if (!within) return undefined
  const source = walkSource(listing, bucket, query)
  if (query.delimiter === '/') return oneLevel(source, within, query)
  const walk = new FlatWalk(source, query.prefix, within, query.after, query.limit + 1)
  return query.delimiter === '' ? flat(walk, query) : grouped(walk, query)
}

async function flat(walk: FlatWalk, query: ListQuery): Promise<RawEntry[]> {
  const entries: RawEntry[] = []
  while (entries.length <= query.limit) {
    const entry = await walk.next()
    if (!entry) break
    entries.push(entry)
  }
  return entries
}

/** Any delimiter: of each group one key is read, the others are passed over. */
async function grouped(walk: FlatWalk, query: ListQuery): Promise<RawEntry[]> {
  const { prefix, delimiter, after, limit } = query
  const entries: RawEntry[] = []
  while (entries.length <= limit) {
    const entry = await walk.next()
    if (!entry) break
    const at = entry.name.indexOf(delimiter, prefix.length)
    if (at < 0) {
      entries.push(entry)
      continue
    }
    const group = entry.name.slice(0, at + delimiter.length)
    walk.seekPast(group)
    // Told on an earlier page, or passed over by where this listing begins.
    if (!after.startsWith(group)) entries.push({ ...marker(group), isPrefix: true })
  }
  return entries
}

/** The gateway's own delimiter: one level is the answer. */
async function oneLevel(source: WalkSource, within: ListablePrefix, query: ListQuery): Promise<RawEntry[]> {
  const { prefix, after, limit } = query
  const bound: Bound = after === '' ? { kind: 'from', name: prefix } : { kind: 'after', name: after }
  const level = await source.level(within.ask, bound)
  const cursor = new LevelCursor(within.ask, (from) => source.level(within.ask, from), level, bound)
  const entries: RawEntry[] = []
  if (prefix.endsWith('/') && compareUtf8(after, prefix) < 0) {
    const folder = await source.folderItself(prefix, level)
    if (folder) entries.push(folder)
  }
  while (entries.length <= limit) {
    const entry = await cursor.next()
    if (!entry) break
    if (!entry.name.startsWith(prefix) || entry.name === entries.at(-1)?.name) continue
    // A folder object below the prefix has the delimiter in its name, so it is rolled up like everything else in that folder.
    entries.push(entry.name.endsWith('/') && entry.name !== prefix ? { ...entry, isPrefix: true } : entry)
  }
  return entries
}

function walkSource(listing: LevelListing, bucket: string, query: ListQuery): WalkSource {
  const { source, features, isMarker } = listing
  const markers = async (prefixes: string[]) => (isMarker && !features.anyKey ? isMarker(bucket, prefixes) : [])
  const read = (prefix: string, bound: Bound): Promise<Level> =>
    readLevel(source, { bucket, prefix, bound, limit: query.limit + 1, continued: query.after !== '' })
  return {
    level: read,
    markers,
    async folderItself(prefix, level) {
      // Where any key can be held, the folder object is an entry of its own level like any other.
      if (features.anyKey || level.view().next()?.name === prefix) return undefined
      if ((await markers([prefix]))[0]) return (await exists(prefix, level)) ? marker(prefix) : undefined
      // Only an empty folder shows itself as an object.
      if (level.count > 0) return undefined
      const entry = await lookUp(source, features, bucket, prefix)
      return entry?.isPrefix ? undefined : entry
    },
  }

  async function exists(prefix: string, level: Level): Promise<boolean> {
    return level.count > 0 || (await lookUp(source, features, bucket, prefix)) !== undefined
  }
}
