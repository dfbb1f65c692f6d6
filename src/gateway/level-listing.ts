import { compareUtf8 } from '../common/byte-order.js'
import type { Bound } from './bound.js'
import type { GatewayFeatures, ListQuery } from './gateway.js'
import type { ListablePrefix } from './keys.js'
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

/** Up to `query.limit` + 1 entries of a gateway that lists one level at a time, unsorted and whole. Throws S3Error. */
export async function listByLevels(
  listing: LevelListing,
  bucket: string,
  query: ListQuery,
  within: ListablePrefix,
): Promise<RawEntry[]> {
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
    folderItself: (prefix, level) => folderItself(listing, bucket, prefix, level.view().next()),
  }
}

/**
 * The folder object named as the prefix of a listing whose first entry is `first`, if there is one that is not listed. Where any key can be held,
 * it is an entry like any other; gateways of files show only empty folders as objects, and only among their siblings.
 */
export async function folderItself(
  listing: LevelListing,
  bucket: string,
  prefix: string,
  first: RawEntry | undefined,
): Promise<RawEntry | undefined> {
  const { source, features, isMarker } = listing
  if (features.anyKey || first?.name === prefix) return undefined
  const isRecorded = isMarker !== undefined && (await isMarker(bucket, [prefix]))[0] === true
  if (first) return isRecorded ? marker(prefix) : undefined
  const entry = await lookUp(source, features, bucket, prefix)
  if (entry?.isPrefix) return isRecorded ? marker(prefix) : undefined
  return entry
}
