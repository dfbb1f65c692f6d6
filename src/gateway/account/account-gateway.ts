import { S3Error } from '../../common/errors/s3-error.js'
import { restCall } from '../calls/rest-call.js'
import { isRecord } from '../calls/rpc-reply.js'
import { uploadQuota } from '../calls/upload-quota.js'
import type { GatewayClient } from '../client.js'
import { nonsense } from '../errors.js'
import type { Gateway, GatewayBucket, GatewayFeatures } from '../gateway.js'
import { refusal } from '../keys.js'
import { listPage } from '../listing/listing.js'
import { requireBucket } from '../listing/look-up.js'
import { download } from '../objects/download/download.js'
import { presignedGet } from '../objects/download/presigned-get.js'
import { stat } from '../objects/download/stat.js'
import { remove } from '../objects/remove/remove.js'
import { upload } from '../objects/upload/upload.js'
import { isTime } from '../time.js'
import { hiddenAccess } from './hidden-access.js'
import { listPolicies, setPolicy } from './policies.js'

/**
 * The gateway as the account of `client.session` sees it.
 * @param anonymous a client without a log-in, used to find out what everyone may do
 */
export function accountGateway(client: GatewayClient, anonymous: GatewayClient): Gateway {
  const features = () => client.features.get(client.session)
  const able = async <T>(use: (features: GatewayFeatures) => T | Promise<T>): Promise<T> => use(await features())
  return {
    features,
    listBuckets: () => listBuckets(client),
    bucketExists: (bucket) => bucketExists(client, bucket),
    makeBucket: (bucket) => changeBucket(client, 'web.MakeBucket', bucket),
    deleteBucket: (bucket) => changeBucket(client, 'web.DeleteBucket', bucket),
    list: (bucket, query) =>
      able((can) => listPage({ source: client, features: can, isMarker: client.isMarker }, bucket, query)),
    stat: (bucket, key) => able((can) => stat(client, can, bucket, key)),
    download: (bucket, key, range) => able((can) => download(client, can, bucket, key, range)),
    refusesKey: (key) => able((can) => (can.anyKey ? undefined : refusal(key))),
    uploadQuota: () => uploadQuota(client),
    upload: (bucket, key, length, attributes) => upload(client, bucket, key, length, attributes),
    remove: (bucket, key, order) => able((can) => remove(client, can, bucket, key, order)),
    listPolicies: (bucket) => listPolicies(client.session, bucket),
    hiddenAccess: (bucket, entries, places) => hiddenAccess(client, anonymous, bucket, entries, places),
    setPolicy: (bucket, prefix, policy) => setPolicy(client.session, bucket, prefix, policy),
    presignedGet: (bucket, key, expirySeconds, host) =>
      presignedGet(client.session, { bucket, key, expirySeconds, host }),
    call: (call) => restCall(client, call),
    async ready() {
      await client.features.ask(client.session)
      // MinIO with several drives accepts log-ins and describes itself before it can read its drives.
      await listBuckets(client)
    },
  }
}

async function listBuckets(client: GatewayClient): Promise<GatewayBucket[]> {
  const result = await client.session.call({ method: 'web.ListBuckets', params: {}, repeatable: true })
  const buckets = result.buckets ?? []
  if (!Array.isArray(buckets)) throw nonsense('answered web.ListBuckets without a list')
  return buckets.map((bucket: unknown) => {
    if (isRecord(bucket) && typeof bucket.name === 'string' && isTime(bucket.creationDate)) {
      return { name: bucket.name, creationDate: bucket.creationDate }
    }
    throw nonsense('answered web.ListBuckets with a bucket that has no name or time')
  })
}

async function changeBucket(client: GatewayClient, method: string, bucket: string): Promise<void> {
  try {
    await client.session.call({ method, params: { bucketName: bucket }, subject: { bucket } })
  } finally {
    client.snapshots.bucketChanged(bucket)
  }
}

async function bucketExists(client: GatewayClient, bucket: string): Promise<boolean> {
  try {
    await requireBucket(client, bucket)
    return true
  } catch (error) {
    if (error instanceof S3Error && error.code === 'NoSuchBucket') return false
    throw error
  }
}
