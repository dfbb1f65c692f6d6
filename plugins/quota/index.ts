import { type BucketStanding, defineCall, definePlugin, withChanges, z } from 'dealgate/plugin'

const source = 'docs/limits.md#quotas-of-buckets'

const result = z.object({
  Bucket: z.string(),
  Quota: z
    .object({ Bytes: z.int().optional(), Objects: z.int().optional() })
    .describe('What the bucket may have; what is absent has no bound.'),
  Stored: z
    .object({ Bytes: z.int(), Objects: z.int() })
    .describe('All versions, and delete markers as objects. Objects in deals alone have no bytes.'),
})

const root = 'BucketQuota'

const getBucketQuota = defineCall({
  name: 'GetBucketQuota',
  source,
  summary: 'Returns the quota of a bucket, and what counts for it.',
  access: 'signed',
  on: { method: 'GET', resource: 'bucket', subresource: 'x-quota' },
  result,
  root,
  answer: async ({ request: { bucket } }, { gateway }) => shown(bucket, await gateway.bucketQuota(bucket)),
})

const bound = z.int().min(0).max(999_999_999_999_999).nullable().optional()

const setBucketQuota = defineCall({
  name: 'SetBucketQuota',
  source,
  summary: 'Bounds what a bucket may have. What it has already stays.',
  access: 'signed',
  on: { method: 'POST', resource: 'bucket', subresource: 'x-quota' },
  body: z.strictObject({
    Bytes: bound.describe('null ends the bound; absent, it stays. So does the other.'),
    Objects: bound,
  }),
  result,
  root,
  async answer({ request: { bucket }, body: { Bytes: bytes, Objects: objects } }, { gateway }) {
    const change = { ...(bytes !== undefined && { bytes }), ...(objects !== undefined && { objects }) }
    const standing = await gateway.setBucketQuota(bucket, change)
    const words = Object.entries(standing.quota).map(([name, value]) => `${name}:${value ?? 'none'}`)
    return withChanges(shown(bucket, standing), words)
  },
})

function shown(bucket: string, { quota, usage }: BucketStanding) {
  return {
    Bucket: bucket,
    Quota: {
      ...(quota.bytes !== null && { Bytes: quota.bytes }),
      ...(quota.objects !== null && { Objects: quota.objects }),
    },
    Stored: { Bytes: usage.bytes, Objects: usage.objects },
  }
}

/** The calls about the quota of a bucket, which the gateway keeps and enforces. */
export default definePlugin({
  name: 'quota',
  standard: true,
  summary: 'Shows and sets the quota of a bucket, which the gateway keeps and enforces.',
  create: () => ({ operations: [getBucketQuota, setBucketQuota] }),
})
