import { S3Error } from '../../common/errors/s3-error.js'
import type { Gateway } from '../gateway.js'
import { isStagingBucket } from './staging-bucket.js'

/**
 * The gateway without the buckets of staged parts: they do not exist for clients, jobs and plugins, and their names are
 * taken. Lists every method by name, so that a new method of Gateway does not compile before it is decided.
 */
export function hideStaging(gateway: Gateway): Gateway {
  const open = async <T>(bucket: string | undefined, run: () => Promise<T>): Promise<T> => {
    refuse(bucket)
    return run()
  }
  return {
    features: () => gateway.features(),
    refusesKey: (key) => gateway.refusesKey(key),
    uploadQuota: () => gateway.uploadQuota(),
    ready: () => gateway.ready(),
    listBuckets: async () => (await gateway.listBuckets()).filter(({ name }) => !isStagingBucket(name)),
    bucketExists: async (bucket) => !isStagingBucket(bucket) && gateway.bucketExists(bucket),
    async makeBucket(bucket) {
      if (isStagingBucket(bucket)) throw new S3Error('BucketAlreadyExists', { fields: { BucketName: bucket } })
      await gateway.makeBucket(bucket)
    },
    deleteBucket: (bucket) => open(bucket, () => gateway.deleteBucket(bucket)),
    list: (bucket, query) => open(bucket, () => gateway.list(bucket, query)),
    stat: (bucket, key) => open(bucket, () => gateway.stat(bucket, key)),
    download: (bucket, key, range) => open(bucket, () => gateway.download(bucket, key, range)),
    upload(bucket, key, length, attributes) {
      refuse(bucket)
      return gateway.upload(bucket, key, length, attributes)
    },
    remove: (bucket, key, order) => open(bucket, () => gateway.remove(bucket, key, order)),
    listPolicies: (bucket) => open(bucket, () => gateway.listPolicies(bucket)),
    setPolicy: (bucket, prefix, policy) => open(bucket, () => gateway.setPolicy(bucket, prefix, policy)),
    hiddenAccess: (bucket, entries, places) => open(bucket, () => gateway.hiddenAccess(bucket, entries, places)),
    presignedGet: (bucket, key, expirySeconds, host) =>
      open(bucket, () => gateway.presignedGet(bucket, key, expirySeconds, host)),
    call: (call) => open(call.bucket, () => gateway.call(call)),
  }
}

function refuse(bucket: string | undefined): void {
  if (bucket !== undefined && isStagingBucket(bucket))
    throw new S3Error('NoSuchBucket', { fields: { BucketName: bucket } })
}
