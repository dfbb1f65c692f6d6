import { z } from 'zod'
import { callerOf, isAllowed, refusalOf } from '../access/access.js'
import { mustFindBucket } from '../bucket-name.js'
import { GatewayError } from '../errors.js'
import { defineMethod } from './method.js'
import { optionalText, text } from './params.js'
import { orderOf } from './write-order.js'

/**
 * Declares the order of an upload that began with `fence: late`, before its last bytes are sent. Throws Overtaken,
 * OtherGeneration and WriteIdReused at once when the write is already too late. Whatever it answers, the upload is
 * checked again when it is complete.
 */
export const fenceUpload = defineMethod({
  name: 'web.FenceUpload',
  access: 'policy',
  params: z.object({
    bucketName: text,
    objectName: text,
    fence: z.number(),
    writeId: text,
    expectedGeneration: optionalText,
  }),
  run(params, { context, identity }) {
    const { bucketName, objectName } = params
    const found = context.buckets.find(bucketName)
    if (!isAllowed(context.policies, identity, 'put', found, objectName)) throw refusalOf(identity)
    const bucket = mustFindBucket(context, bucketName)
    const order = orderOf(params)
    if (order === undefined) throw new GatewayError('InvalidArguments')
    const key = Buffer.from(objectName)
    context.store.mayStillUpload(bucket, key, order)
    context.lateOrders.give(callerOf(identity), bucket.id, key, order)
    return {}
  },
})
