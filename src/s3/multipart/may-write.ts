import { S3Error } from '../../common/errors/s3-error.js'
import { allows } from '../../gateway/account/policies.js'
import type { Context } from '../../server/context.js'

/**
 * Throws NoSuchBucket, and AccessDenied when the caller's gateway account does not own the bucket and no rule of the
 * bucket allows others to write the key: the gateway would refuse the object at the end, after its parts have filled
 * the disk. A grant of the bucket's documents suffices, too. Rules that the server's own account may not read allow
 * nothing here. Resolves true if the caller's account owns the bucket.
 */
export async function requireMayWrite(context: Context, bucket: string, key: string): Promise<boolean> {
  if (context.door.granted('s3:PutObject', bucket, key)) return false
  const refusal = await unlessDenied(context.checks.requireOwner(bucket))
  if (!(refusal instanceof S3Error)) return true
  const rules = await unlessDenied(context.own.listPolicies(bucket))
  if (rules instanceof S3Error || !allows(rules, 'put', key))
    throw new S3Error('AccessDenied', {
      message: 'This account neither owns the bucket nor may write this key by one of its rules.',
      cause: refusal,
    })
  return false
}

/**
 * True if the caller may see and end the uploads of all key pairs: the account of the caller owns the bucket, or a
 * document of the bucket grants the action. A key pair with rights may see and end its own alone.
 */
export async function managesUploads(context: Context, action: string, bucket: string, key?: string): Promise<boolean> {
  if (context.caller === undefined || context.caller.identity.rights) return false
  if (context.door.granted(action, bucket, key)) return true
  return !((await unlessDenied(context.checks.requireOwner(bucket))) instanceof S3Error)
}

/** Returns AccessDenied in place of throwing it. */
function unlessDenied<T>(asked: Promise<T>): Promise<T | S3Error> {
  return asked.catch((error) => {
    if (error instanceof S3Error && error.code === 'AccessDenied') return error
    throw error
  })
}
