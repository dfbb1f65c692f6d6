import { S3Error } from '../common/errors/s3-error.js'
import type { Gateway } from '../gateway/gateway.js'

/**
 * Resolves if the caller's gateway account owns the bucket, or a document of the bucket has granted this request what
 * the owner may do; `instead` is an action on a key that suffices. Throws S3Error NoSuchBucket, AccessDenied, or the
 * error of the gateway call.
 */
export type RequireOwner = (
  bucket: string,
  instead?: { readonly action: string; readonly key: string },
) => Promise<void>

/**
 * The owner of a bucket is the account whose own web.ListBuckets names it. An account that may read, list or write a
 * bucket by a policy of the gateway is not its owner. The answer is not cached, because a cached one could be about an
 * earlier bucket of the same name.
 */
export async function requireOwner(
  gateway: Pick<Gateway, 'listBuckets' | 'bucketExists'>,
  bucket: string,
): Promise<void> {
  const own = await gateway.listBuckets()
  if (own.some(({ name }) => name === bucket)) return
  if (!(await gateway.bucketExists(bucket))) throw new S3Error('NoSuchBucket', { fields: { BucketName: bucket } })
  throw new S3Error('AccessDenied', {
    message:
      'Only the account that owns the bucket may do this, and the bucket is not among the buckets of this account.',
  })
}
