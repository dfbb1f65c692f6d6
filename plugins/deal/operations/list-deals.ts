import { z } from 'zod'
import { defineCall } from '../../../src/extension/define-call.js'
import { requireBucket } from '../../../src/operations/common/buckets.js'
import { dealEntries, dealEntry } from '../deal-entries.js'
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
    async answer({ request: { bucket, key } }, context) {
      context.requireKey(bucket, key, 'read')
      return { Bucket: bucket, Key: key, DealEntry: await dealEntries(parts, context, { bucket, key }) }
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
    async answer({ request: { bucket } }, context) {
      context.requireWholeBucket(bucket, 'read')
      await requireBucket(context, bucket)
      return { Bucket: bucket, DealEntry: await dealEntries(parts, context, { bucket }) }
    },
  })
}
