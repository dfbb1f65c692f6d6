import { S3Error } from '../../common/errors/s3-error.js'
import type { Context } from '../api/context.js'
import type { Caller } from '../api/identity.js'
import type { AnyOperation } from '../api/operation.js'
import type { RequestHead } from '../api/request.js'
import type { BucketSettings } from '../api/settings.js'
import { isBearer } from '../auth/authenticate.js'
import type { Row } from '../plugins/table.js'
import { isForOwner, requireExpectedOwner, statesOwner } from './bucket-owner.js'
import { requireNeeds } from './needed-right.js'
import { continuesUpload, requiredActions, uploadOf } from './required-actions.js'
import { requireReadable } from './values/readable.js'

/**
 * MAY THIS CALLER DO THIS? Every request passes here when its caller and its operation are known, and before its body
 * can be read. What an operation learns later, such as the keys in a body, it asks the same `Context.authorizer`.
 * @throws S3Error AccessDenied, NoSuchBucket, MethodNotAllowed for the policy of another account's bucket, and
 *   ServiceUnavailable when the documents cannot be read
 */
export async function authorize(row: Row, head: RequestHead, context: Context): Promise<void> {
  // Policies and ACLs decide on each action of the request: required-actions.ts, authorizer.ts. A bearer token is for
  // the service behind the call, which decides.
  if (!isPassedOn(row.operation, context.caller, head)) await requireActions(row, head, context)
  // The right in the bucket: needed-right.ts.
  const needs = requireNeeds(row.operation, head, context)
  if (needs) await needs
  // The owner of the bucket, if the client names it: bucket-owner.ts. It may call the gateway.
  if (statesOwner(head)) await requireExpectedOwner(head, context)
  // The ownership of data that only this server keeps. Last, because it calls the gateway.
  if (head.bucket !== undefined && isForOwner(row.operation)) await context.checks.requireOwner(head.bucket)
}

/**
 * True for a request that acts without an account: documents of the bucket and rules of the gateway decide. Before
 * them, and before a context is made, an unsigned request for what no document can open is refused.
 * @throws S3Error AccessDenied
 */
export function isAnonymous(operation: AnyOperation, caller: Caller | undefined, head: RequestHead): boolean {
  if (caller || operation.access === 'public' || isPassedOn(operation, caller, head)) return false
  if (operation.call || (operation.access !== 'anonymous' && head.bucket === undefined)) throw signRequired()
  return true
}

/** True for an unsigned request with a bearer token, if its operation takes one. */
export function isPassedOn({ access }: AnyOperation, caller: Caller | undefined, head: RequestHead): boolean {
  return access === 'bearer' && !caller && isBearer(head)
}

/**
 * The decision about the resource of the request. Operations with further resources, such as the source of a copy, ask
 * the same authorizer for each.
 */
async function requireActions(row: Row, head: RequestHead, context: Context): Promise<void> {
  const { operation } = row
  const unsigned = !context.caller && operation.access !== 'public'
  if (unsigned) await refuseRestricted(context.settings, head)
  // What policies see is what the operation does: a value that it could not read decides nothing.
  requireReadable(head, operation)
  const upload = continuesUpload(operation) ? await uploadOf(head, context) : undefined
  const asked = requiredActions(row, head, context.plugins.storageClasses, upload)
  await context.authorizer.decide(...asked)
  if (!unsigned || operation.access === 'anonymous') return
  const granted =
    asked.length > 0 &&
    asked.every(({ action, key, more }) => context.authorizer.granted(action, head.bucket ?? '', key, more?.versionId))
  if (!granted) throw signRequired()
}

/** Throws AccessDenied for an anonymous request if RestrictPublicBuckets is on, even if the gateway would allow it. */
export async function refuseRestricted(
  settings: BucketSettings,
  { bucket }: { readonly bucket: string | undefined },
): Promise<void> {
  if (bucket === undefined) return
  const block = await settings.latest(bucket, 'publicAccessBlock')
  if (block?.RestrictPublicBuckets) throw new S3Error('AccessDenied')
}

/** Throws AccessDenied for an anonymous caller, unless the request was granted. */
function signRequired(): S3Error {
  return new S3Error('AccessDenied', { message: 'Anonymous access is not allowed: sign the request.' })
}
