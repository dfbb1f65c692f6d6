import { z } from 'zod'
import { defineCall } from '../../../src/extension/define-call.js'
import { withRaw } from '../../../src/extension/raw.js'
import { requireBucket } from '../../../src/operations/common/buckets.js'
import { dealEntry, dealPage } from '../deal-entries.js'
import type { DealParts } from '../parts.js'
import { SOURCE } from '../request.js'

const ofObject = z.object({ Bucket: z.string(), Key: z.string(), DealEntry: z.array(dealEntry) })
const ofBucket = z.object({ Bucket: z.string(), DealEntry: z.array(dealEntry) })

const shared = { source: SOURCE, root: 'ListDealsResult', pages: 'DealEntry' } as const

/** None is an empty list. */
export function listObjectDeals(parts: DealParts) {
  return defineCall({
    ...shared,
    name: 'ListObjectDeals',
    summary: 'Lists the deals that were made about an object, the oldest first, each with its state.',
    on: { method: 'GET', resource: 'object', subresource: 'x-deal' },
    result: ofObject,
    async answer({ request: { bucket, key }, page: wanted }, context) {
      context.requireKey(bucket, key, 'read')
      const { page, raw } = await dealPage(parts, context, { bucket, key }, wanted)
      const result = { Bucket: bucket, Key: key, DealEntry: page }
      // Public gateways may tell of another key here: see `isOf` in deal-client.ts.
      return context.caller?.identity.rights ? result : withRaw(result, raw)
    },
  })
}

/** Deals about single objects of the bucket are not among them. */
export function listBucketDeals(parts: DealParts) {
  return defineCall({
    ...shared,
    name: 'ListBucketDeals',
    summary: 'Lists the deals that were made about a bucket as a whole, the oldest first, each with its state.',
    on: { method: 'GET', resource: 'bucket', subresource: 'x-deal' },
    result: ofBucket,
    async answer({ request: { bucket }, page: wanted }, context) {
      context.requireWholeBucket(bucket, 'read')
      await requireBucket(context, bucket)
      const { page, raw } = await dealPage(parts, context, { bucket }, wanted)
      return withRaw({ Bucket: bucket, DealEntry: page }, raw)
    },
  })
}
