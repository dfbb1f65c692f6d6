import { S3Error } from '../../common/errors/s3-error.js'
import { allows } from '../../gateway/account/policies.js'
import type { Context } from '../../server/context.js'

/**
 * Throws NoSuchBucket, and AccessDenied when the caller's gateway account does not own the bucket and no rule of the
 * bucket allows others to write the key: the gateway would refuse the object at the end, after its parts have filled
 * the disk. A grant of the bucket's documents suffices, too. Where the server's own account may not read the rules, the
 * gateway decides when the upload completes. Resolves true if the caller's account owns the bucket.
 */
export async function requireMayWrite(context: Context, bucket: string, key: string): Promise<boolean> {
  if (context.door.granted('s3:PutObject', bucket, key)) return false
  const refusal = await context.checks.requireOwner(bucket).catch((error) => {
    if (error instanceof S3Error && error.code === 'AccessDenied') return error
    throw error
  })
  if (refusal === undefined) return true
  const rules = await context.own.listPolicies(bucket).catch((error) => {
    if (error instanceof S3Error && error.code === 'AccessDenied') return undefined
    throw error
  })
  if (rules && !allows(rules, 'put', key))
    throw new S3Error('AccessDenied', {
      message: 'This account neither owns the bucket nor may write this key by one of its rules.',
      cause: refusal,
    })
  return false
}
