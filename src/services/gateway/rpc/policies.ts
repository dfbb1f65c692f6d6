import { z } from 'zod'
import { mustOwnBucket } from '../bucket-name.js'
import { GatewayError } from '../errors.js'
import type { Policy } from '../store/policies.js'
import { defineSignedMethod } from './method.js'
import { text } from './params.js'

const POLICIES: readonly string[] = ['readonly', 'writeonly', 'readwrite'] satisfies Policy[]

export const listAllBucketPolicies = defineSignedMethod({
  name: 'web.ListAllBucketPolicies',
  params: z.object({ bucketName: text }),
  run({ bucketName }, { context, account }) {
    const { policies, quirks, buckets } = context
    if (quirks.has('missing-bucket-texts') && buckets.find(bucketName) === undefined) {
      throw new GatewayError('NoSuchBucketUnnamed')
    }
    const bucket = mustOwnBucket(context, account, bucketName)
    const list = policies.of(bucket.id).map((entry) => ({ bucket: bucketName, ...entry }))
    return { policies: list.length === 0 && quirks.has('null-arrays') ? null : list }
  },
})

/** `none` removes the entry of this prefix; any other policy replaces it. */
export const setBucketPolicy = defineSignedMethod({
  name: 'web.SetBucketPolicy',
  params: z.object({ bucketName: text, prefix: text, policy: text }),
  async run({ bucketName, prefix: given, policy }, { context, account }) {
    const prefix = given.endsWith('*') ? given.slice(0, -1) : given
    if (policy !== 'none' && !POLICIES.includes(policy)) throw new GatewayError('InvalidPolicy', { value: policy })
    await context.writer.run(() => {
      const { id } = mustOwnBucket(context, account, bucketName)
      if (policy === 'none') context.policies.remove(id, prefix)
      else context.policies.put(id, { prefix, policy: policy as Policy })
    })
    return {}
  },
})
