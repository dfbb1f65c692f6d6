import { z } from 'zod'
import { rfc3339 } from '../../clock.js'
import { checkBucketName, mustOwnBucket } from '../bucket-name.js'
import { GatewayError } from '../errors.js'
import { defineSignedMethod } from './method.js'
import { text } from './params.js'

export const listBuckets = defineSignedMethod({
  name: 'web.ListBuckets',
  params: z.object({}),
  run(_, { context: { buckets, quirks }, account }) {
    const moving = quirks.has('moving-creation-date')
    const list = buckets
      .of(account.id)
      .map(({ name, created, changed }) => ({ name, creationDate: moving ? changed : created }))
    return { buckets: list.length === 0 && quirks.has('null-arrays') ? null : list }
  },
})

export const makeBucket = defineSignedMethod({
  name: 'web.MakeBucket',
  params: z.object({ bucketName: text }),
  async run({ bucketName }, { context, account }) {
    checkBucketName(context, bucketName)
    context.writer.requireRoom()
    await context.writer.run(() => {
      const found = context.buckets.find(bucketName)
      if (found !== undefined) {
        const own = found.owner === account.id || context.quirks.has('taken-names')
        throw new GatewayError(own ? 'BucketExists' : 'BucketTaken', { bucket: bucketName })
      }
      // Another process may have removed the account since the call began.
      if (context.accounts.get(account.id) === undefined) throw new GatewayError('Authentication')
      context.buckets.add(bucketName, rfc3339(context.clock.now()), account.id)
    })
    return {}
  },
})

export const deleteBucket = defineSignedMethod({
  name: 'web.DeleteBucket',
  params: z.object({ bucketName: text }),
  async run({ bucketName }, { context, account }) {
    await context.writer.run(() => {
      const { id } = mustOwnBucket(context, account, bucketName)
      if (!context.buckets.isEmpty(id)) throw new GatewayError('BucketNotEmpty', { bucket: bucketName })
      context.buckets.remove(id)
    })
    return {}
  },
})
