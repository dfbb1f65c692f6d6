import type { GatewayFeatures, ListEntry, ListPage, ListQuery } from './gateway.js'
import { type LevelListing, listByLevels } from './level-listing.js'
import { type RawEntry, toObject } from './list-entry.js'
import { listPaged } from './paged-listing.js'

/** One page of a bucket's listing, whatever the gateway can do. Throws S3Error. */
export async function listPage(
  listing: LevelListing,
  bucket: string,
  query: ListQuery,
  bucketExists: () => Promise<void>,
): Promise<ListPage> {
  const entries = listing.features.pagedListing
    ? await listPaged(listing.source.session, bucket, query)
    : await listByLevels(listing, bucket, query)
  // The gateway was not asked about a prefix that no key can have, so whether the bucket is there has to be.
  if (!entries) await bucketExists()
  const shown = (entries ?? []).slice(0, query.limit).map((entry) => toListEntry(listing.features, entry))
  return { entries: shown, truncated: entries !== undefined && entries.length > query.limit }
}

function toListEntry(features: GatewayFeatures, entry: RawEntry): ListEntry {
  return entry.isPrefix ? { kind: 'prefix', prefix: entry.name } : { kind: 'object', object: toObject(features, entry) }
}
