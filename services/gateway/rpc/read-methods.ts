import type { ReadContext } from '../context.js'
import { bucketNumbers, bucketVersioning, listAllBucketPolicies, listBuckets } from './bucket-reads.js'
import { listObjects } from './list-objects.js'
import { listObjectVersions } from './list-versions.js'
import type { RpcMethod } from './method.js'

/** The methods that show buckets and objects, and change nothing. */
export const readMethods: readonly RpcMethod<ReadContext>[] = [
  listBuckets,
  bucketNumbers,
  bucketVersioning,
  listAllBucketPolicies,
  listObjects,
  listObjectVersions,
]
