import type { GatewayContext } from './context.js'
import { GatewayError } from './errors.js'
import type { BucketRow } from './store/buckets.js'

const LABEL = '[a-z0-9](?:[a-z0-9-]*[a-z0-9])?'
const NAME = new RegExp(`^(?=.{3,63}$)${LABEL}(?:\\.${LABEL})*$`)
const IPV4 = /^\d+\.\d+\.\d+\.\d+$/

/** Rules of https://docs.aws.amazon.com/AmazonS3/latest/userguide/bucketnamingrules.html that public gateways enforce; the gateway's own path is taken. */
export function checkBucketName(context: GatewayContext, bucket: string): void {
  if (!NAME.test(bucket) || IPV4.test(bucket) || bucket === context.names.path) {
    throw new GatewayError('InvalidBucketName', { bucket })
  }
}

/** The bucket of this name; throws when the name is none or there is no such bucket. */
export function mustFindBucket(context: GatewayContext, bucket: string): BucketRow {
  const row = context.buckets.find(bucket)
  if (row !== undefined) return row
  checkBucketName(context, bucket)
  throw new GatewayError('NoSuchBucket', { bucket })
}
