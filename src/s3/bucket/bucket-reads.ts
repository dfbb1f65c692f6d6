import { getBucketLocation, headBucket } from './bucket.js'
import { listObjects, listObjectsV2 } from './list-objects.js'

/** The operations by which clients look at a bucket. A plugin can run them over something else that it shows as one. */
export const bucketReads = [listObjects, listObjectsV2, headBucket, getBucketLocation] as const
