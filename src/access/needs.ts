import { S3Error } from '../common/errors/s3-error.js'
import { allows } from '../gateway/account/policies.js'
import type { AnyOperation } from '../plugins/forms/plugin.js'
import type { RequestHead } from '../request/s3-request.js'
import type { Context } from '../server/context.js'
import { canOpen } from './decision/policy.js'
import type { Access } from './rights.js'

/**
 * The right that an operation needs. It is checked by the head of the request before the body can be read, so that for
 * a refused caller nothing is read, stored or parsed, and no `100 Continue` is sent.
 */
export type Needs =
  /** A right to the key. */
  | { readonly key: Access }
  /** Each of these rights to every key of the bucket. */
  | { readonly bucket: readonly Access[] }
  /** A right to at least one key of the bucket. The body names the keys, and each of them is checked then. */
  | { readonly some: Access | 'any' }
  /** The body authenticates the caller, and only the part that does so is read first. */
  | 'form'

/**
 * Throws AccessDenied for a caller without the right that the operation needs, NoSuchBucket for an anonymous one. The
 * caller's rights also restrict what the operation then asks of the gateway.
 *
 * A PUT or POST without `needs` keeps the server from starting (plugins/loading/check-plugins.ts). The frame of calls
 * (`defineCall`) checks them itself.
 */
export async function requireNeeds(operation: AnyOperation, head: RequestHead, context: Context): Promise<void> {
  const { needs } = operation
  const { bucket, key } = head
  if (needs === undefined || bucket === undefined) return
  if (!context.caller && operation.access === 'anonymous') {
    if (typeof needs === 'object' && 'some' in needs && (await opensEach(operation, bucket, context))) return
    const granted = key !== undefined && context.door.granted('s3:PutObject', bucket, key)
    return granted ? undefined : requirePublic(needs, bucket, key, context)
  }
  if (needs === 'form') {
    if (context.caller) context.checks.requireSome(bucket, 'write')
  } else if ('some' in needs) context.checks.requireSome(bucket, needs.some)
  else if ('key' in needs) context.checks.requireKey(bucket, key ?? '', needs.key)
  else for (const access of needs.bucket) context.checks.requireWholeBucket(bucket, access)
}

/**
 * True if the policy of the bucket can allow some of the keys that the body will name. No ACL allows everybody that.
 */
async function opensEach({ action }: AnyOperation, bucket: string, { door }: Context): Promise<boolean> {
  if (typeof action !== 'object' || !('each' in action)) return false
  const policy = (await door.documents(bucket))?.policy
  return policy !== undefined && canOpen(policy.parsed, action.each)
}

/**
 * Checks the rules of the gateway before the body is read. The gateway checks them again, but only after the body has
 * been received.
 */
async function requirePublic(
  needs: Needs,
  bucket: string,
  key: string | undefined,
  { own }: Pick<Context, 'own'>,
): Promise<void> {
  const entries = await own.listPolicies(bucket)
  const granted =
    typeof needs === 'object' && 'key' in needs
      ? allows(entries, needs.key === 'write' ? 'put' : 'get', key ?? '')
      : entries.some(({ policy }) => policy !== 'readonly')
  if (!granted) throw new S3Error('AccessDenied')
}
