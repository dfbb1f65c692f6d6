import { S3Error } from '../../common/errors/s3-error.js'

/**
 * Bucket names that any rule of S3 has allowed, including the former ones of us-east-1.
 * https://docs.aws.amazon.com/AmazonS3/latest/userguide/bucketnamingrules.html
 */
const BUCKET_NAME = /^[A-Za-z0-9._-]{3,255}$/

/**
 * Throws InvalidBucketName for an invalid bucket name. Names arrive percent-encoded: without this check, this server's
 * locks and access checks would take `a%2Fb/c` for the bucket `a/b`, and a gateway addressed by path for the key `b/c`
 * of the bucket `a`.
 */
export function refuseNoBucketName(bucket: string): void {
  if (BUCKET_NAME.test(bucket)) return
  throw new S3Error('InvalidBucketName', {
    message:
      bucket === ''
        ? 'The request names no bucket.'
        : 'The specified bucket is not valid: a name has 3 to 63 lower-case letters, digits, dots and hyphens.',
    fields: { BucketName: bucket },
  })
}
