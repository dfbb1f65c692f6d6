import { compareUtf8 } from '../../common/byte-order.js'
import type { GatewayFeatures, ListEntry, ListPage, ListQuery } from '../gateway.js'
import { listablePrefix } from '../keys.js'
import { folderItself, type LevelListing, listByLevels } from './level-listing.js'
import { type RawEntry, toObject } from './list-entry.js'
import { requireBucket } from './look-up.js'
import { listPaged } from './paged-listing.js'

const NOTHING: ListPage = Object.freeze({ entries: [], truncated: false })

/**
 * One page of a bucket's listing, on any gateway. Throws S3Error. The way of a listing, from top to bottom:
 * 1. This file chooses between the two ways to list.
 * 2. `paged-listing.ts`: the gateway pages and sorts by itself.
 * 3. `level-listing.ts`: the gateway lists one whole level at a time, unsorted. `walk.ts` descends through the levels
 *   for listings without the gateway's delimiter; `level-cursor.ts` reads one level in order.
 * 4. `level-reader.ts` fetches a level: `listing-scanner.ts` parses the reply while it arrives and `list-entry.ts`
 *   checks each entry. `level.ts` holds the sorted level (`packed-entries.ts`, `sort-in-slices.ts`); `selection.ts`
 *   picks the requested part of a level that is too large.
 * 5. `snapshot-cache.ts` keeps levels for the next pages.
 * 6. `look-up.ts` finds a single entry by the same calls.
 */
export async function listPage(listing: LevelListing, bucket: string, query: ListQuery): Promise<ListPage> {
  const { features, source } = listing
  const within = features.anyKey ? { ask: query.prefix, filter: false } : listablePrefix(query.prefix)
  if (!within) {
    // No key can have this prefix, so the gateway is not asked for it. The bucket still has to exist.
    await requireBucket(source, bucket)
    return NOTHING
  }
  const entries =
    features.pagedListing && !within.filter
      ? await listPagedWithFolder(listing, bucket, query)
      : await listByLevels(listing, bucket, query, within)
  const shown = entries.slice(0, query.limit).map((entry) => toListEntry(features, entry))
  return { entries: shown, truncated: entries.length > query.limit }
}

async function listPagedWithFolder(listing: LevelListing, bucket: string, query: ListQuery): Promise<RawEntry[]> {
  const entries = await listPaged(listing.source.session, bucket, query)
  if (!query.prefix.endsWith('/') || compareUtf8(query.after, query.prefix) >= 0) return entries
  const folder = await folderItself(listing, bucket, query.prefix, entries[0])
  return folder ? [folder, ...entries] : entries
}

function toListEntry(features: GatewayFeatures, entry: RawEntry): ListEntry {
  return entry.isPrefix ? { kind: 'prefix', prefix: entry.name } : { kind: 'object', object: toObject(features, entry) }
}
