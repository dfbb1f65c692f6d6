import { z } from 'zod'
import { S3Error } from '../../../common/errors/s3-error.js'
import type { BucketStanding, Gateway } from '../../api/gateway.js'
import type { GatewayClient } from '../client.js'
import { nonsense } from '../errors.js'

const usage = z.object({ bytes: z.int(), objects: z.int() })
const standing = z.object({ quota: z.object({ bytes: z.int().nullable(), objects: z.int().nullable() }), usage })
const numbers = z.object({
  buckets: z.array(
    standing.extend({
      name: z.string(),
      versioning: z.enum(['Enabled', 'Suspended']).exactOptional(),
      locks: z.boolean(),
      current: usage,
      noncurrent: usage,
      markers: z.int(),
    }),
  ),
})

type Asked = 'uploadQuota' | 'bucketQuota' | 'setBucketQuota' | 'bucketNumbers'

/** See Gateway. */
export function gatewayQuotas({
  session,
  features,
}: Pick<GatewayClient, 'session' | 'features'>): Pick<Gateway, Asked> {
  const ask = async (method: string, bucket: string, change: object = {}): Promise<BucketStanding> => {
    if (!(await features.get(session)).bucketQuotas)
      throw new S3Error('NotImplemented', {
        message: 'The quota of a bucket is not implemented: the gateway has none that clients can read or set.',
      })
    const params = { bucketName: bucket, ...change }
    return read(standing, method, await session.call({ method, params, subject: { bucket }, repeatable: true }))
  }
  return {
    async uploadQuota() {
      if (!(await features.get(session)).uploadQuotas) return undefined
      const { uploads } = await session.call({ method: 'web.UploadQuota', params: {}, repeatable: true })
      if (uploads === null) return undefined
      if (typeof uploads !== 'number') throw nonsense('answered web.UploadQuota without a number')
      return uploads
    },
    bucketQuota: (bucket) => ask('web.BucketQuota', bucket),
    setBucketQuota: (bucket, change) => ask('web.SetBucketQuota', bucket, change),
    async bucketNumbers(bucketNames) {
      if (!(await features.get(session)).bucketNumbers)
        throw new S3Error('NotImplemented', { message: 'The gateway does not keep the numbers of its buckets.' })
      const method = 'web.BucketNumbers'
      const answer = await session.call({ method, params: { bucketNames }, repeatable: true })
      return read(numbers, method, answer).buckets
    },
  }
}

/** Throws S3Error for an answer of another form. */
function read<T>(form: z.ZodType<T>, method: string, answer: unknown): T {
  const { data, error } = form.safeParse(answer)
  if (error) throw nonsense(`answered ${method} in another form: ${error.issues[0]?.path.join('.')}`)
  return data as T
}
