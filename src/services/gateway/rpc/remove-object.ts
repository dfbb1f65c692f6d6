import { z } from 'zod'
import { isAllowed } from '../access/access.js'
import { mustFindBucket } from '../bucket-name.js'
import type { GatewayContext } from '../context.js'
import { GatewayError } from '../errors.js'
import type { BucketRow } from '../store/buckets.js'
import { defineMethod } from './method.js'
import { text, texts } from './params.js'

/** Removes exactly the named objects; one that is not there is no error. */
export const removeObject = defineMethod({
  name: 'web.RemoveObject',
  access: 'policy',
  params: z.object({ bucketName: text, objects: texts }),
  async run({ bucketName, objects }, { context, identity }) {
    if (bucketName === '' || objects.length === 0) throw new GatewayError('InvalidArguments')
    const found = context.buckets.find(bucketName)
    const allowed = objects.every((name) => isAllowed(context.policies, identity, 'delete', found?.id, name))
    if (!allowed) throw new GatewayError('Authentication')
    const bucket = mustFindBucket(context, bucketName)
    if (context.quirks.has('recursive-remove')) {
      await removeLikeFolders(context, bucket, objects)
      return {}
    }
    if (objects.includes('')) throw new GatewayError('InvalidArguments')
    await context.store.remove(
      bucket,
      objects.map((name) => Buffer.from(name)),
    )
    return {}
  },
})

/** As public gateways do: a prefix takes all beneath it along and ends the list, as does an object that is not there (MinIO cmd/web-handlers.go, `RemoveObject`). */
async function removeLikeFolders(
  { store }: GatewayContext,
  bucket: BucketRow,
  names: readonly string[],
): Promise<void> {
  for (const name of names) {
    if (name === '' || name.endsWith('/')) {
      await store.removeBeneath(bucket, Buffer.from(name))
      return
    }
    if ((await store.remove(bucket, [Buffer.from(name)])) === 0) return
  }
}
