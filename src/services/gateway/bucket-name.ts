import { type Identity, owns, refusalOf } from './access/access.js'
import type { GatewayContext } from './context.js'
import { GatewayError } from './errors.js'
import type { BucketRow } from './store/buckets.js'

const LABEL = '[a-z0-9](?:[a-z0-9-]*[a-z0-9])?'
const NAME = new RegExp(`^(?=.{3,63}$)${LABEL}(?:\\.${LABEL})*$`)
const IPV4 = /^\d+\.\d+\.\d+\.\d+$/

/**
 * Throws GatewayError InvalidBucketName for a name that public gateways refuse, by the rules of
 * https://docs.aws.amazon.com/AmazonS3/latest/userguide/bucketnamingrules.html, and for the gateway's own path.
 */
export function checkBucketName(context: GatewayContext, bucket: string): void {
  if (!NAME.test(bucket) || IPV4.test(bucket) || bucket === context.names.path) {
    throw new GatewayError('InvalidBucketName', { bucket })
  }
}

/** Returns the bucket of this name. Throws GatewayError when the name is invalid or the bucket does not exist. */
export function mustFindBucket(context: GatewayContext, bucket: string): BucketRow {
  const row = context.buckets.find(bucket)
  if (row !== undefined) return row
  checkBucketName(context, bucket)
  throw new GatewayError('NoSuchBucket', { bucket })
}

/** Like `mustFindBucket`, for what only the owner may do. Throws GatewayError also for any other caller. */
export function mustOwnBucket(context: GatewayContext, identity: Identity, bucket: string): BucketRow {
  const row = mustFindBucket(context, bucket)
  if (!owns(identity, row)) throw refusalOf(identity)
  return row
}
