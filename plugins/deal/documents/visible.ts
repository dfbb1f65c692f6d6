import { type Context, S3Error } from 'dealgate'
import type { DealRecord } from '../records/deal-record.js'

type Subject = Pick<DealRecord, 'bucket' | 'key'> & Partial<Pick<DealRecord, 'account'>>

/**
 * Returns a check for the deals that the caller may see: those of buckets and keys that it may read, made by the
 * caller's gateway account or in buckets that this account sees.
 */
export function visibility(context: Context): (deal: Subject) => Promise<boolean> {
  const seen = new Map<string, Promise<boolean>>()
  const account = context.caller?.identity.account?.accessKey ?? ''
  const seesBucket = (bucket: string) => {
    const known = seen.get(bucket) ?? seesBucketOf(context, bucket)
    seen.set(bucket, known)
    return known
  }
  return async (deal) => mayRead(context, deal) && (deal.account === account || (await seesBucket(deal.bucket)))
}

/** The gateway refuses the bucket of another account: its deals are then not visible, like those of no bucket. */
async function seesBucketOf({ gateway }: Context, bucket: string): Promise<boolean> {
  try {
    return await gateway.bucketExists(bucket)
  } catch (error) {
    if (error instanceof S3Error && error.code === 'AccessDenied') return false
    throw error
  }
}

function mayRead(context: Context, { bucket, key }: Subject): boolean {
  try {
    if (key === undefined) context.checks.requireWholeBucket(bucket, 'read')
    else context.checks.requireKey(bucket, key, 'read')
    return true
  } catch (error) {
    if (error instanceof S3Error && error.code === 'AccessDenied') return false
    throw error
  }
}
