import { S3Error } from '../../../common/errors/s3-error.js'
import { isRecord } from '../../../common/json.js'
import type { BucketStanding, Gateway } from '../../api/gateway.js'
import type { GatewayClient } from '../client.js'
import { nonsense } from '../errors.js'

/** See Gateway. */
export function gatewayQuotas({
  session,
  features,
}: Pick<GatewayClient, 'session' | 'features'>): Pick<Gateway, 'uploadQuota' | 'bucketQuota' | 'setBucketQuota'> {
  const ask = async (method: string, bucket: string, change: object = {}): Promise<BucketStanding> => {
    if (!(await features.get(session)).bucketQuotas)
      throw new S3Error('NotImplemented', {
        message: 'The quota of a bucket is not implemented: the gateway has none that clients can read or set.',
      })
    const params = { bucketName: bucket, ...change }
    return readStanding(method, await session.call({ method, params, subject: { bucket }, repeatable: true }))
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
  }
}

function readStanding(method: string, { quota, usage }: Readonly<Record<string, unknown>>): BucketStanding {
  const numberOf = (of: unknown, name: string) => {
    const value = isRecord(of) ? of[name] : undefined
    if (value === null && of === quota) return null
    if (typeof value === 'number' && Number.isSafeInteger(value)) return value
    throw nonsense(`answered ${method} without a number of ${name}`)
  }
  return {
    quota: { bytes: numberOf(quota, 'bytes'), objects: numberOf(quota, 'objects') },
    usage: { bytes: numberOf(usage, 'bytes') ?? 0, objects: numberOf(usage, 'objects') ?? 0 },
  }
}
