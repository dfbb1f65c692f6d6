import { defineCall, withRaw } from 'dealgate'
import { z } from 'zod'
import { dealEntry, dealPage } from '../documents/deal-entries.js'
import type { DealParts } from '../parts.js'
import { SOURCE } from '../request.js'
import { requireBucket } from '../subject.js'

const ofObject = z.object({ Bucket: z.string(), Key: z.string(), DealEntry: z.array(dealEntry) })
const ofBucket = z.object({ Bucket: z.string(), DealEntry: z.array(dealEntry) })

/** The deal of an entry, for `expand`. */
function dealOfEntry(entry: Readonly<Record<string, unknown>>, list: Readonly<Record<string, unknown>>) {
  const { DealCid } = (entry.Deal ?? {}) as { readonly DealCid?: string }
  if (DealCid === undefined) return undefined
  return { bucket: String(list.Bucket), ...(list.Key !== undefined && { key: String(list.Key) }), dealCid: DealCid }
}

const shared = { source: SOURCE, root: 'ListDealsResult', pages: 'DealEntry', expands: dealOfEntry } as const

/** A subject without deals has an empty list. */
export function listObjectDeals(parts: DealParts) {
  return defineCall({
    ...shared,
    name: 'ListObjectDeals',
    summary: 'Lists the deals for an object, oldest first, each with its state.',
    access: 'owner',
    on: { method: 'GET', resource: 'object', subresource: 'x-deal' },
    result: ofObject,
    async answer({ request: { bucket, key }, page: wanted }, context) {
      context.checks.requireKey(bucket, key, 'read')
      const { page, raw } = await dealPage(parts, context, { bucket, key }, wanted)
      const result = { Bucket: bucket, Key: key, DealEntry: page }
      // The answer of a public gateway may hold deals of another key: see `isOf` in deal-client.ts.
      const { rights, policies } = context.caller?.identity ?? {}
      return rights || policies ? result : withRaw(result, raw)
    },
  })
}

/** Does not list deals for single objects of the bucket. */
export function listBucketDeals(parts: DealParts) {
  return defineCall({
    ...shared,
    name: 'ListBucketDeals',
    summary: 'Lists the deals for a bucket as a whole, oldest first, each with its state.',
    access: 'owner',
    on: { method: 'GET', resource: 'bucket', subresource: 'x-deal' },
    result: ofBucket,
    async answer({ request: { bucket }, page: wanted }, context) {
      context.checks.requireWholeBucket(bucket, 'read')
      await requireBucket(context, bucket)
      const { page, raw } = await dealPage(parts, context, { bucket }, wanted)
      return withRaw({ Bucket: bucket, DealEntry: page }, raw)
    },
  })
}
