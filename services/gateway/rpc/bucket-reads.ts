import { z } from 'zod'
import { GatewayError } from '../errors.js'
import { mustOwnBucket } from '../store/key-rules.js'
import { parseRule } from '../store/object-locks.js'
import { defineSignedRead, text, texts } from './method.js'

export const listBuckets = defineSignedRead({
  name: 'web.ListBuckets',
  params: z.object({}),
  async run(_, { context: { db }, account }) {
    const rows = await db.read.buckets.of(account.id)
    return { buckets: rows.map(({ name, created }) => ({ name, creationDate: created })) }
  },
})

/** Most buckets of which one call tells the numbers. */
const MAX_BUCKETS = 1000

/**
 * Returns the settings and the numbers of those of the named buckets that belong to the account. `usage` is what counts
 * for the quota, as in web.BucketQuota. The other numbers count bytes wherever they are.
 */
export const bucketNumbers = defineSignedRead({
  name: 'web.BucketNumbers',
  feature: 'bucket-numbers',
  params: z.object({ bucketNames: texts }),
  async run({ bucketNames }, { context: { db }, account }) {
    if (bucketNames.length > MAX_BUCKETS) throw new GatewayError('InvalidArguments')
    const rows = await db.read.buckets.describe(account.id, bucketNames)
    return {
      buckets: rows.map((row) => ({
        name: row.name,
        ...(row.versioning !== null && { versioning: row.versioning }),
        locks: row.lockRule !== null,
        quota: { bytes: row.quotaBytes, objects: row.quotaObjects },
        usage: { bytes: row.bytes + row.retainedBytes, objects: row.objects },
        current: { bytes: row.currentBytes, objects: row.currentObjects },
        noncurrent: { bytes: row.versionBytes, objects: row.objects - row.currentObjects - row.markers },
        markers: row.markers,
      })),
    }
  },
})

export const bucketVersioning = defineSignedRead({
  name: 'web.BucketVersioning',
  feature: 'versions',
  params: z.object({ bucketName: text }),
  async run({ bucketName }, { context, account }) {
    const { versioning, lockRule } = await mustOwnBucket(context, account, bucketName)
    return {
      ...(versioning !== null && { status: versioning }),
      ...(lockRule !== null && { lock: parseRule(lockRule) }),
    }
  },
})

export const listAllBucketPolicies = defineSignedRead({
  name: 'web.ListAllBucketPolicies',
  params: z.object({ bucketName: text }),
  async run({ bucketName }, { context, account }) {
    const { policies } = context.db.read
    const bucket = await mustOwnBucket(context, account, bucketName)
    const list = (await policies.of(bucket.id)).map((entry) => ({ bucket: bucketName, ...entry }))
    return { policies: list }
  },
})
