import { z } from 'zod'
import { mustOwnBucket } from '../store/key-rules.js'
import { parseRule } from '../store/object-locks.js'
import { defineSignedRead, text } from './method.js'

export const listBuckets = defineSignedRead({
  name: 'web.ListBuckets',
  params: z.object({}),
  async run(_, { context: { db }, account }) {
    const rows = await db.read.buckets.of(account.id)
    return { buckets: rows.map(({ name, created }) => ({ name, creationDate: created })) }
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
