import { compareUtf8 } from '../../common/byte-order.js'
import type { Bound } from '../bound.js'
import type { GatewayFeatures, ListQuery } from '../gateway.js'
import { isPartOfRoot, type ListablePrefix } from '../keys.js'
import type { Level } from './level.js'
import { LevelCursor } from './level-cursor.js'
import { type LevelSource, readLevel } from './level-reader.js'
import type { RawEntry } from './list-entry.js'
import { lookUp, marker } from './look-up.js'
import { FlatWalk, type WalkSource } from './walk.js'

/** Tells for each prefix whether the proxy's own records hold a folder object of that name. */
export type MarkerLookup = (bucket: string, prefixes: string[]) => Promise<boolean[]>

export interface LevelListing {
  readonly source: LevelSource
  readonly features: GatewayFeatures
  readonly isMarker: MarkerLookup | undefined
}

/** Up to `query.limit` + 1 entries from a gateway that lists one whole level at a time, unsorted. Throws S3Error. */
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

/** Handles any delimiter: reads one key of each group and skips the others. */
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
    // An earlier page had this group, or the listing starts within it.
    if (!after.startsWith(group)) entries.push({ ...marker(group), isPrefix: true })
  }
  return entries
}

/** Handles the gateway's own delimiter: one level is the answer. */
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
    // A folder object below the prefix contains the delimiter, so it is rolled up like all other keys of that folder.
    entries.push(entry.name.endsWith('/') && entry.name !== prefix ? { ...entry, isPrefix: true } : entry)
  }
  return entries
}

function walkSource(listing: LevelListing, bucket: string, query: ListQuery): WalkSource {
  const { source, features, isMarker } = listing
  const markers = async (prefixes: string[]) => (isMarker && !features.anyKey ? isMarker(bucket, prefixes) : [])
  const read = async (prefix: string, bound: Bound): Promise<Level> => {
    const level = { bucket, prefix, bound, limit: query.limit + 1, continued: query.after !== '' }
    const found = await readLevel(source, level)
    // The reader of the level skips keys without the prefix.
    return isPartOfRoot(prefix) && !prefix.endsWith('/') && found.objects === 0
      ? readLevel(source, { ...level, prefix: '' })
      : found
  }
  return {
    level: read,
    markers,
    folderItself: (prefix, level) => folderItself(listing, bucket, prefix, level.view().next()),
  }
}

/**
 * The folder object named like the prefix of a listing, if it exists and the listing does not show it. On gateways that
 * store any key it is a regular entry; gateways that keep objects as files show only empty folders as objects, and only
 * among their siblings.
 * @param first first entry of the listing
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
