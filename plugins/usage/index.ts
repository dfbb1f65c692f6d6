import { defineCall, definePlugin, PageOf, z } from 'dealgate/plugin'
import { byClass, countBucket, countFrom, countJob, source, sumOf } from './count.js'
import { describeBuckets } from './describe.js'

/** Most objects of a page, and the time after which a page ends, ms. */
const MAX_OBJECTS = 100_000
const MAX_MS = 10_000

/**
 * Counts what a bucket contains by storage class, of which no gateway keeps numbers: the server walks through the
 * listing, and a page of the answer is what it has counted within the bounds.
 */
const listBucketUsage = defineCall({
  name: 'ListBucketUsage',
  source,
  summary: 'Counts the objects of a bucket and their bytes by storage class, up to 100,000 objects a page.',
  access: 'signed',
  action: ['s3:ListBucket', 'usage:ListBucketUsage'],
  // A listing shows a caller what it may read.
  ownRules: true,
  on: { method: 'GET', resource: 'bucket', subresource: 'x-usage' },
  query: z.strictObject({
    prefix: z.string().optional().describe('Counts the keys that begin with it.'),
    'max-objects': z.int().min(1).max(MAX_OBJECTS).optional().describe('Objects of a page; default 100,000.'),
  }),
  pages: 'Classes',
  result: z.object({
    Objects: z.int().describe('Of this page: add up those of all pages.'),
    Bytes: z.int(),
    Classes: z.array(byClass).meta({ element: 'Class' }),
  }),
  async answer({ request: { bucket }, query: { prefix = '', 'max-objects': most = MAX_OBJECTS }, page }, context) {
    const ends = Date.now() + MAX_MS
    const goesOn = () => Date.now() < ends
    const { classes, next } = await countFrom(context, bucket, { prefix, after: page.from ?? '', most, goesOn })
    return { Objects: sumOf(classes, 'Objects'), Bytes: sumOf(classes, 'Bytes'), Classes: new PageOf(classes, next) }
  },
})

/** The calls that tell what buckets contain. */
export default definePlugin({
  name: 'usage',
  standard: true,
  summary: 'Tells what buckets contain: their objects and bytes as they change, or by a count, and by storage class.',
  create: (_, host) => ({ operations: [listBucketUsage, countBucket, describeBuckets], jobs: [countJob(host)] }),
})
