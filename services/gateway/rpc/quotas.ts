import { z } from 'zod'
import { owns, refusalOf } from '../access.js'
import type { Account } from '../accounts/accounts.js'
import { mustBeBucket, type mustOwnBucket } from '../store/key-rules.js'
import { NO_QUOTA, quotaOf } from '../store/quotas.js'
import { defineSignedMethod, type RpcMethod, type SignedCall, text } from './method.js'
import { changeBucket } from './versions.js'

/**
 * Returns how many multipart uploads the account may have under way; null for no bound. Multipart uploads exist in
 * front of the gateway alone: its clients count them, and enforce the bound.
 */
const uploadQuota = defineSignedMethod({
  name: 'web.UploadQuota',
  feature: 'upload-quota',
  params: z.object({}),
  run: async (_, { context, account: { id } }) => ({ uploads: (await context.db.read.quotas.of(id))?.uploads ?? null }),
})

/** Allows the owner, as `mustOwnBucket` does, and the first account. */
const mustGovern: typeof mustOwnBucket = async (context, identity, bucket, { buckets } = context.db.read) => {
  const row = mustBeBucket(context, bucket, await buckets.find(bucket))
  if (!owns(identity, row) && (identity as Account).isIamUser !== false) throw refusalOf(identity)
  return row
}

const bound = z.int().min(0).nullish()

/**
 * Returns what a bucket may have, null for no bound, and what it has: objects of all versions with delete markers, and
 * the bytes that are here.
 */
const bucketQuota = defineSignedMethod({
  name: 'web.BucketQuota',
  feature: 'bucket-quota',
  params: z.object({ bucketName: text }),
  run: async ({ bucketName }, call) => standing(bucketName, call),
})

/** Changes the bounds that are present; null ends one. Answers as web.BucketQuota. */
const setBucketQuota = defineSignedMethod({
  name: 'web.SetBucketQuota',
  feature: 'bucket-quota',
  params: z.object({ bucketName: text, bytes: bound, objects: bound }),
  async run({ bucketName, bytes, objects }, call) {
    const asked = { ...(bytes !== undefined && { bytes }), ...(objects !== undefined && { objects }) }
    const change: Parameters<typeof changeBucket>[2] = ({ quotas }, bucket) =>
      quotas.setIn(bucket, { ...NO_QUOTA, ...quotaOf(bucket), ...asked })
    await changeBucket(call, bucketName, change, { find: mustGovern, feature: 'quotas' })
    return standing(bucketName, call)
  },
})

async function standing(bucketName: string, { context, account }: SignedCall) {
  const bucket = await mustGovern(context, account, bucketName)
  const { bytes, objects } = quotaOf(bucket) ?? NO_QUOTA
  return { quota: { bytes, objects }, usage: await context.db.read.quotas.usageIn(bucket) }
}

export const quotaMethods: readonly RpcMethod[] = [uploadQuota, bucketQuota, setBucketQuota]
