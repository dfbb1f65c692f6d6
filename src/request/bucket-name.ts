import { S3Error } from '../errors/s3-error.js'

/** What buckets have been called under any rule of S3 (https://docs.aws.amazon.com/AmazonS3/latest/userguide/bucketnamingrules.html, the older ones of us-east-1 included). */
const BUCKET_NAME = /^[A-Za-z0-9._-]{3,255}$/

/**
 * Throws InvalidBucketName for what no bucket can be called. Names come percent-encoded, so `a%2Fb/c` would be the bucket `a/b` to us, to its locks and to what its
 * caller may do, and the key `b/c` of bucket `a` to a gateway that is asked for it by path.
 */
export function refuseNoBucketName(bucket: string): void {
  if (BUCKET_NAME.test(bucket)) return
  throw new S3Error('InvalidBucketName', {
    ...(bucket === '' && { message: 'The request names no bucket.' }),
    fields: { BucketName: bucket },
  })
}
