import { z } from 'zod'
import { rfc3339 } from '../../clock.js'
import { checkBucketName, mustFindBucket } from '../bucket-name.js'
import { GatewayError } from '../errors.js'
import { defineMethod } from './method.js'
import { text } from './params.js'

export const listBuckets = defineMethod({
  name: 'web.ListBuckets',
  access: 'signed',
  params: z.object({}),
  run(_, { context: { buckets, quirks } }) {
    const moving = quirks.has('moving-creation-date')
    const list = buckets.all().map(({ name, created, changed }) => ({ name, creationDate: moving ? changed : created }))
    return { buckets: list.length === 0 && quirks.has('null-arrays') ? null : list }
  },
})

export const makeBucket = defineMethod({
  name: 'web.MakeBucket',
  access: 'signed',
  params: z.object({ bucketName: text }),
  async run({ bucketName }, { context }) {
    checkBucketName(context, bucketName)
    await context.writer.run(() => {
      if (context.buckets.find(bucketName) !== undefined) throw new GatewayError('BucketExists', { bucket: bucketName })
      context.buckets.add(bucketName, rfc3339(context.clock.now()))
    })
    return {}
  },
})

export const deleteBucket = defineMethod({
  name: 'web.DeleteBucket',
  access: 'signed',
  params: z.object({ bucketName: text }),
  async run({ bucketName }, { context }) {
    await context.writer.run(() => {
      const { id } = mustFindBucket(context, bucketName)
      if (!context.buckets.isEmpty(id)) throw new GatewayError('BucketNotEmpty', { bucket: bucketName })
      context.buckets.remove(id)
    })
    return {}
  },
})
