import { z } from 'zod'
import { mustFindBucket } from '../bucket-name.js'
import { GatewayError } from '../errors.js'
import type { Policy } from '../store/policies.js'
import { defineMethod } from './method.js'
import { text } from './params.js'

const POLICIES: readonly string[] = ['readonly', 'writeonly', 'readwrite'] satisfies Policy[]

export const listAllBucketPolicies = defineMethod({
  name: 'web.ListAllBucketPolicies',
  access: 'signed',
  params: z.object({ bucketName: text }),
  run({ bucketName }, { context }) {
    const { policies, quirks, buckets } = context
    if (quirks.has('missing-bucket-texts') && buckets.find(bucketName) === undefined) {
      throw new GatewayError('NoSuchBucketUnnamed')
    }
    const bucket = mustFindBucket(context, bucketName)
    const list = policies.of(bucket.id).map((entry) => ({ bucket: bucketName, ...entry }))
    return { policies: list.length === 0 && quirks.has('null-arrays') ? null : list }
  },
})

/** `none` takes the entry of this prefix away, another policy takes its place. */
export const setBucketPolicy = defineMethod({
  name: 'web.SetBucketPolicy',
  access: 'signed',
  params: z.object({ bucketName: text, prefix: text, policy: text }),
  async run({ bucketName, prefix: given, policy }, { context }) {
    const prefix = given.endsWith('*') ? given.slice(0, -1) : given
    if (policy !== 'none' && !POLICIES.includes(policy)) throw new GatewayError('InvalidPolicy', { value: policy })
    await context.writer.run(() => {
      const { id } = mustFindBucket(context, bucketName)
      if (policy === 'none') context.policies.remove(id, prefix)
      else context.policies.put(id, { prefix, policy: policy as Policy })
    })
    return {}
  },
})
