import { compareUtf8 } from '../../../common/byte-order.js'
import type { ListEntry, ListPage, ListQuery } from '../../api/gateway.js'
import type { GatewayFeatures } from '../../api/gateway-features.js'
import type { Session } from '../account/session.js'
import type { MarkerLookup } from '../client.js'
import { nonsense } from '../errors.js'
import { isPartOfRoot, type ListablePrefix, listablePrefix } from '../keys.js'
import { type Level, LevelCursor } from './level.js'
import { type LevelSource, readLevel } from './level-reader.js'
import { type RawEntry, toObject } from './listing-scanner.js'
import { lookUp, marker, readEntries, requireBucket } from './look-up.js'
import type { Bound } from './packed-entries.js'
import { FlatWalk, type WalkSource } from './walk.js'

const NOTHING: ListPage = Object.freeze({ entries: [], truncated: false })

/**
 * One page of a bucket's listing, on any gateway. Throws S3Error. The way of a listing, from top to bottom:
 * 1. This file chooses between the two ways to list: `listPaged`, where the gateway pages and sorts by itself, and
 *   `listByLevels`, where it lists one whole level at a time, unsorted.
 * 2. `walk.ts` descends through the levels for listings without the gateway's delimiter; `level.ts` holds a sorted
 *   level (`packed-entries.ts`) and reads it in order.
 * 3. `level-reader.ts` fetches a level: `listing-scanner.ts` parses the reply while it arrives and checks each entry.
 *   `selection.ts` picks the requested part of a level that is too large.
 * 4. `snapshot-cache.ts` keeps levels for the next pages.
 * 5. `look-up.ts` finds a single entry by the same calls.
 */
export async function listPage(listing: LevelListing, bucket: string, query: ListQuery): Promise<ListPage> {
  const { features, source } = listing
  const within = features.anyKey ? { ask: query.prefix, filter: false } : listablePrefix(query.prefix)
  if (!within) {
    // No key can have this prefix, so the gateway is not asked for it. The bucket still has to exist.
    await requireBucket(source, bucket)
    return NOTHING
  }
  const { entries, versioned } =
    features.pagedListing && !within.filter
      ? await listPagedWithFolder(listing, bucket, query)
      : { entries: await listByLevels(listing, bucket, query, within) }
  const shown = entries.slice(0, query.limit).map((entry) => toListEntry(features, entry))
  return { entries: shown, truncated: entries.length > query.limit, ...(versioned && { versioned }) }
}

async function listPagedWithFolder(listing: LevelListing, bucket: string, query: ListQuery): Promise<RawPage> {
  const page = await listPaged(listing.source.session, bucket, query)
  if (!query.prefix.endsWith('/') || compareUtf8(query.after, query.prefix) >= 0) return page
  const folder = await folderItself(listing, bucket, query.prefix, page.entries[0])
  return folder ? { ...page, entries: [folder, ...page.entries] } : page
}

function toListEntry(features: GatewayFeatures, entry: RawEntry): ListEntry {
  return entry.isPrefix ? { kind: 'prefix', prefix: entry.name } : { kind: 'object', object: toObject(features, entry) }
}

interface LevelListing {
  readonly source: LevelSource
  readonly features: GatewayFeatures
  readonly isMarker: MarkerLookup | undefined
}

/** Up to `query.limit` + 1 entries from a gateway that lists one whole level at a time, unsorted. Throws S3Error. */
async function listByLevels(
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
async function folderItself(
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

/** Largest page of a gateway, entries. */
const MAX_KEYS = 1000

interface RawPage {
  readonly entries: RawEntry[]
  /** See ListPage. */
  readonly versioned?: true | undefined
}

/** Up to `query.limit` + 1 entries from a gateway that pages and sorts. Throws S3Error. */
export async function listPaged(session: Session, bucket: string, query: ListQuery): Promise<RawPage> {
  const entries: RawEntry[] = []
  let marker = query.after
  let last = query.after
  let versioned: true | undefined
  while (entries.length <= query.limit) {
    const maxKeys = Math.min(MAX_KEYS, query.limit + 1 - entries.length)
    const result = await session.call({
      method: 'web.ListObjects',
      params: { bucketName: bucket, prefix: query.prefix, marker, maxKeys, delimiter: query.delimiter },
      subject: { bucket },
      repeatable: true,
    })
    if (result.versioned === true) versioned = true
    const page = readEntries(result.objects)
    for (const each of page) {
      const entry = rolledUp(each, query)
      if (compareUtf8(entry.name, last) <= 0) continue
      entries.push(entry)
      last = entry.name
    }
    if (result.isTruncated !== true) break
    const next = typeof result.nextMarker === 'string' ? result.nextMarker : page.at(-1)?.name
    if (next === undefined || compareUtf8(next, marker) <= 0)
      throw nonsense('answered web.ListObjects with a page that does not advance')
    marker = next
  }
  return { entries, versioned }
}

/**
 * Gateways that keep objects as files show an empty folder as an object even where the delimiter in its name makes it a
 * prefix.
 */
function rolledUp(entry: RawEntry, { prefix, delimiter }: ListQuery): RawEntry {
  const at = entry.isPrefix || delimiter === '' ? -1 : entry.name.indexOf(delimiter, prefix.length)
  return at < 0 ? entry : { ...entry, name: entry.name.slice(0, at + delimiter.length), isPrefix: true }
}
