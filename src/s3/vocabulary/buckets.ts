import { S3Error } from '../../common/errors/s3-error.js'
import type { Context } from '../../server/context.js'

/** Throws NoSuchBucket. */
export async function requireBucket(context: Context, bucket: string): Promise<void> {
  if (!(await context.gateway.bucketExists(bucket)))
    throw new S3Error('NoSuchBucket', { fields: { BucketName: bucket } })
}

/** https://docs.aws.amazon.com/AmazonS3/latest/userguide/bucketnamingrules.html. Throws InvalidBucketName. */
export function requireBucketName(bucket: string): void {
  const legal =
    /^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$/.test(bucket) &&
    !/\.\.|\.-|-\./.test(bucket) &&
    !/^\d+\.\d+\.\d+\.\d+$/.test(bucket)
  if (legal) return
  throw new S3Error('InvalidBucketName', {
    message:
      'A bucket name has 3 to 63 lower-case letters, digits, dots and hyphens, begins and ends with a letter or digit, and is not an IP address.',
    fields: { BucketName: bucket },
  })
}
