import { S3Error } from '../../common/errors/s3-error.js'
import type { NeededRight } from '../api/access.js'
import type { Context } from '../api/context.js'
import type { AnyOperation } from '../api/operation.js'
import type { RequestHead } from '../api/request.js'
import { allows } from '../gateway/account/policies.js'
import { ofVersion } from './required-actions.js'

/**
 * Throws AccessDenied for a caller without the right that the operation needs, NoSuchBucket for an anonymous one. The
 * caller's rights also restrict what the operation then asks of the gateway.
 *
 * A PUT or POST without `needs` keeps the server from starting (src/plugins/check-plugins.ts). The frame of calls
 * (`defineCall`) checks them itself.
 * @returns undefined when nothing had to be asked for
 */
export function requireNeeds(operation: AnyOperation, head: RequestHead, context: Context): Promise<void> | undefined {
  const { needs } = operation
  const { bucket, key } = head
  if (bucket === undefined || (needs === undefined && !context.caller)) return undefined
  if (needs !== undefined && !context.caller && operation.access === 'anonymous')
    return requireOpen(operation, needs, { bucket, key }, context)
  const asked = neededRight(operation)
  if (asked === undefined) return undefined
  if (asked === 'form') {
    if (context.caller) context.checks.requireSome(bucket, 'write')
  } else if ('some' in asked) context.checks.requireSome(bucket, asked.some)
  else if ('key' in asked) context.checks.requireKey(bucket, key ?? '', asked.key)
  else for (const access of asked.bucket) context.checks.requireWholeBucket(bucket, access)
  return undefined
}

/** Throws for an anonymous caller whom neither the documents of the bucket nor the gateway's rules let in. */
async function requireOpen(
  operation: AnyOperation,
  needs: NeededRight,
  { bucket, key }: { readonly bucket: string; readonly key: string | undefined },
  context: Context,
): Promise<void> {
  if (typeof needs === 'object' && 'some' in needs && (await mayOpen(operation, bucket, context))) return
  const granted = key !== undefined && context.authorizer.granted('s3:PutObject', bucket, key)
  if (!granted) await requirePublic(needs, bucket, key, context)
}

/** What an operation declares, or else what the gateway of a caller with rights asks of it: any right for a listing. */
function neededRight({ needs, access, call, on }: AnyOperation): NeededRight | undefined {
  if (needs !== undefined || call || access === 'public') return needs
  if (on.resource === 'bucket') return { some: 'any' }
  return { key: on.method === 'GET' || on.method === 'HEAD' ? 'read' : 'write' }
}

/** True if the policy of the bucket can allow some of the keys that the body will name. */
async function mayOpen({ action }: AnyOperation, bucket: string, { authorizer }: Context): Promise<boolean> {
  if (typeof action !== 'object' || !('each' in action)) return false
  return (await authorizer.canOpen(bucket, action.each)) || authorizer.canOpen(bucket, ofVersion(action.each))
}

/**
 * Checks the rules of the gateway before the body is read. The gateway checks them again, but only after the body has
 * been received.
 */
async function requirePublic(
  needs: NeededRight,
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
