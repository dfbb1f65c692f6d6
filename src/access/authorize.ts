import type { Needs, Tag } from '../api/access.js'
import type { Context } from '../api/context.js'
import type { Caller } from '../api/identity.js'
import type { AnyOperation } from '../api/operation.js'
import type { RequestHead, S3Request } from '../api/request.js'
import type { BucketSettings } from '../api/settings.js'
import { isBearer } from '../auth/authenticate.js'
import { canonicalId, OWN_ID } from '../auth/identities/credentials.js'
import { S3Error } from '../common/errors/s3-error.js'
import { allows } from '../gateway/account/policies.js'
import type { Row } from '../plugins/table.js'
import { continuesUpload, requiredActions, signRequired } from './authorizer.js'
import { hasPolicies } from './documents.js'

/** Reads the tags that a write sets. Throws S3Error. */
type TagsOf = (headers: RequestHead['headers']) => readonly Tag[] | undefined

/**
 * MAY THIS CALLER DO THIS? Every request passes here when its caller and its operation are known, and before its body
 * can be read. What an operation learns later, such as the keys in a body, it asks the same `Context.authorizer`.
 * @throws S3Error AccessDenied, NoSuchBucket, and ServiceUnavailable when the documents cannot be read
 */
export async function authorize(row: Row, head: RequestHead, context: Context, tagsOf: TagsOf): Promise<void> {
  // Policies and ACLs, by the actions that the operation declares: authorizer.ts, answers.ts, decide.ts.
  await decide(row, head, context, tagsOf)
  // The owner of the bucket, if the client names it.
  await requireExpectedOwner(head, context)
  // The right in the bucket: rights.ts.
  await requireNeeds(row.operation, head, context)
  // The ownership of data that only this server keeps. Last, because it calls the gateway.
  await requireOwned(row.operation, head, context)
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
async function decide({ operation, plugin }: Row, head: RequestHead, context: Context, tagsOf: TagsOf): Promise<void> {
  // The token of such a request is for the service behind the call, which decides.
  if (isPassedOn(operation, context.caller, head)) return
  const unsigned = !context.caller && operation.access !== 'public'
  if (unsigned) await refuseRestricted(context.settings, head)
  const upload = continuesUpload(operation) ? await uploadOf(head, context) : undefined
  const asked = requiredActions(operation, plugin, head, context.plugins.storageClasses, tagsOf, upload)
  await context.authorizer.decide(...asked)
  if (!unsigned || operation.access === 'anonymous') return
  const granted =
    asked.length > 0 && asked.every(({ action, key }) => context.authorizer.granted(action, head.bucket ?? '', key))
  if (!granted) throw signRequired()
}

/** Returns the upload that the request names, if a document can decide by it. */
async function uploadOf({ bucket, key, query }: RequestHead, { caller, authorizer, state }: Context) {
  if (bucket === undefined || (!(caller && hasPolicies(caller.identity)) && !(await authorizer.documents(bucket))))
    return undefined
  const upload = await state.uploads.get(query.get('uploadId') ?? '')
  return upload?.bucket === bucket && upload.key === key ? upload : undefined
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

/**
 * Headers with the expected owner of the bucket, and of the source bucket of a copy:
 * https://docs.aws.amazon.com/AmazonS3/latest/userguide/bucket-owner-condition.html
 */
const EXPECTED_OWNER = ['x-amz-expected-bucket-owner', 'x-amz-source-expected-bucket-owner']

/** Throws AccessDenied if the client expects another owner than the one that ListBuckets returns. */
export async function requireExpectedOwner(
  { headers, bucket }: Pick<S3Request, 'headers' | 'bucket'>,
  context: Pick<Context, 'caller' | 'authorizer'>,
): Promise<void> {
  const own = context.caller ? canonicalId(context.caller.identity) : OWN_ID
  for (const name of EXPECTED_OWNER) {
    const expected = headers[name]
    if (expected === undefined || expected === own) continue
    const place = name === EXPECTED_OWNER[0] ? bucket : copySourceBucket(headers)
    if (place !== undefined && expected === (await context.authorizer.documents(place))?.owner) continue
    throw new S3Error('AccessDenied', {
      message: `The bucket has another owner than ${name} states; the id of its owner is the one that ListBuckets returns.`,
    })
  }
}

/** The bucket of x-amz-copy-source; undefined if there is none. The operation checks the header itself. */
function copySourceBucket(headers: S3Request['headers']): string | undefined {
  return /^\/?([a-z0-9.-]+)\//.exec(String(headers['x-amz-copy-source'] ?? ''))?.[1]
}

/**
 * Throws AccessDenied for a caller without the right that the operation needs, NoSuchBucket for an anonymous one. The
 * caller's rights also restrict what the operation then asks of the gateway.
 *
 * A PUT or POST without `needs` keeps the server from starting (src/plugins/check-plugins.ts). The frame of calls
 * (`defineCall`) checks them itself.
 */
async function requireNeeds(operation: AnyOperation, head: RequestHead, context: Context): Promise<void> {
  const { needs } = operation
  const { bucket, key } = head
  if (needs === undefined || bucket === undefined) return
  if (!context.caller && operation.access === 'anonymous') {
    if (typeof needs === 'object' && 'some' in needs && (await mayOpen(operation, bucket, context))) return
    const granted = key !== undefined && context.authorizer.granted('s3:PutObject', bucket, key)
    return granted ? undefined : requirePublic(needs, bucket, key, context)
  }
  if (needs === 'form') {
    if (context.caller) context.checks.requireSome(bucket, 'write')
  } else if ('some' in needs) context.checks.requireSome(bucket, needs.some)
  else if ('key' in needs) context.checks.requireKey(bucket, key ?? '', needs.key)
  else for (const access of needs.bucket) context.checks.requireWholeBucket(bucket, access)
}

/** True if the policy of the bucket can allow some of the keys that the body will name. */
async function mayOpen({ action }: AnyOperation, bucket: string, { authorizer }: Context): Promise<boolean> {
  return typeof action === 'object' && 'each' in action && (await authorizer.canOpen(bucket, action.each))
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

/** See Operation.access. Calls the gateway, so it runs after the checks that need no call. */
async function requireOwned(operation: AnyOperation, { bucket }: RequestHead, context: Context): Promise<void> {
  // A call that creates a job checks this itself: a repeated client token must return its job even if the bucket is
  // gone or the gateway is unreachable.
  const asksLater = operation.call?.job !== undefined
  if (operation.access === 'owner' && bucket !== undefined && !asksLater) await context.checks.requireOwner(bucket)
}
