import { compareUtf8 } from '../common/byte-order.js'
import type { GatewayFeatures, ListEntry, ListPage, ListQuery } from './gateway.js'
import { listablePrefix } from './keys.js'
import { folderItself, type LevelListing, listByLevels } from './level-listing.js'
import { type RawEntry, toObject } from './list-entry.js'
import { requireBucket } from './look-up.js'
import { listPaged } from './paged-listing.js'

const NOTHING: ListPage = Object.freeze({ entries: [], truncated: false })

/** One page of a bucket's listing, whatever the gateway can do. Throws S3Error. */
export async function listPage(listing: LevelListing, bucket: string, query: ListQuery): Promise<ListPage> {
  const { features, source } = listing
  const within = features.anyKey ? { ask: query.prefix, filter: false } : listablePrefix(query.prefix)
  if (!within) {
    // The gateway is not asked about a prefix that no key can have, so whether the bucket is there has to be.
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
