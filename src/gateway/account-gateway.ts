import { S3Error } from '../errors/s3-error.js'
import { nonsense } from './errors.js'
import type { Gateway, GatewayBucket, GatewayFeatures } from './gateway.js'
import { refusal } from './keys.js'
import { listPage } from './listing.js'
import { requireBucket } from './look-up.js'
import { upload } from './object-upload.js'
import { listPolicies, setPolicy } from './policies.js'
import { presignedGet } from './presigned-get.js'
import { remove } from './remove.js'
import { restCall } from './rest-call.js'
import { download } from './rest-download.js'
import { isRecord } from './rpc.js'
import { stat } from './stat.js'
import { isTime } from './time.js'
import type { Tools } from './tools.js'

/** The gateway as the account of `tools.session` sees it. */
export function accountGateway(tools: Tools): Gateway {
  const features = () => tools.features.get(tools.session)
  const able = async <T>(use: (features: GatewayFeatures) => T | Promise<T>): Promise<T> => use(await features())
  return {
    features,
    listBuckets: () => listBuckets(tools),
    bucketExists: (bucket) => bucketExists(tools, bucket),
    makeBucket: (bucket) => changeBucket(tools, 'web.MakeBucket', bucket),
    deleteBucket: (bucket) => changeBucket(tools, 'web.DeleteBucket', bucket),
    list: (bucket, query) =>
      able((can) => listPage({ source: tools, features: can, isMarker: tools.isMarker }, bucket, query)),
    stat: (bucket, key) => able((can) => stat(tools, can, bucket, key)),
    download: (bucket, key, range) => able((can) => download(tools, can, bucket, key, range)),
    refusesKey: (key) => able((can) => (can.anyKey ? undefined : refusal(key))),
    upload: (bucket, key, length, attributes) => upload(tools, bucket, key, length, attributes),
    remove: (bucket, key) => able((can) => remove(tools, can, bucket, key)),
    listPolicies: (bucket) => listPolicies(tools.session, bucket),
    setPolicy: (bucket, prefix, policy) => setPolicy(tools.session, bucket, prefix, policy),
    presignedGet: (bucket, key, expirySeconds, host) =>
      presignedGet(tools.session, { bucket, key, expirySeconds, host }),
    call: (call) => restCall(tools, call),
    async ready() {
      await tools.features.ask(tools.session)
    },
  }
}

async function listBuckets(tools: Tools): Promise<GatewayBucket[]> {
  const result = await tools.session.call({ method: 'web.ListBuckets', params: {}, repeatable: true })
  const buckets = result.buckets ?? []
  if (!Array.isArray(buckets)) throw nonsense('answered web.ListBuckets with something other than a list')
  return buckets.map((bucket: unknown) => {
    if (isRecord(bucket) && typeof bucket.name === 'string' && isTime(bucket.creationDate)) {
      return { name: bucket.name, creationDate: bucket.creationDate }
    }
    throw nonsense('answered web.ListBuckets with a bucket that has no name or time')
  })
}

async function changeBucket(tools: Tools, method: string, bucket: string): Promise<void> {
  try {
    await tools.session.call({ method, params: { bucketName: bucket }, subject: { bucket } })
  } finally {
    tools.snapshots.bucketChanged(bucket)
  }
}

async function bucketExists(tools: Tools, bucket: string): Promise<boolean> {
  try {
    await requireBucket(tools, bucket)
    return true
  } catch (error) {
    if (error instanceof S3Error && error.code === 'NoSuchBucket') return false
    throw error
  }
}
