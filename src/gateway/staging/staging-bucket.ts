/**
 * Names of the buckets in which proxies stage parts of multipart uploads: one for each state store, so that proxies
 * with another store, which do not know the uploads, do not take their parts for abandoned ones.
 */
const STAGING_BUCKET = /^dealgate-staging-[0-9a-f]{16}$/

/** @param id 16 hexadecimal digits in lower case */
export function stagingBucket(id: string): string {
  return `dealgate-staging-${id}`
}

/** True for a bucket of this and of every other dealgate on the gateway: clients must not see or change any of them. */
export function isStagingBucket(bucket: string): boolean {
  return STAGING_BUCKET.test(bucket)
}
