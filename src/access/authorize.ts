import { S3Error } from '../../common/errors/s3-error.js'
import type { ActionResource, Authorizer, BucketOwner, NeededRight, RequestedAction } from '../api/access.js'
import type { Context } from '../api/context.js'
import type { Gateway } from '../api/gateway.js'
import type { Caller } from '../api/identity.js'
import type { AnyOperation } from '../api/operation.js'
import type { RequestHead } from '../api/request.js'
import type { BucketSettings } from '../api/settings.js'
import { isBearer } from '../auth/authenticate.js'
import { canonicalId, OWN_ID } from '../auth/credentials.js'
import { allows } from '../gateway/account/policies.js'
import { hasDotElement } from '../gateway/keys.js'
import type { Row } from '../plugins/table.js'
import { Answers, type AuthorizedRequest, type AuthorizerDeps, isRoot, ownAccount } from './answers.js'
import { ON_BUCKET_POLICY } from './decide.js'
import { hasPolicies, type ParsedDocuments, readDocuments } from './documents.js'
import { requireExpectedOwner } from './expected-owner.js'
import { type Grant, type Grants, READS, REPLACES } from './grants.js'
import { canOpen } from './policy.js'
import { continuesUpload, ofVersion, requiredActions } from './required-actions.js'
import { requireReadable } from './values/readable.js'

/**
 * MAY THIS CALLER DO THIS? Every request passes here when its caller and its operation are known, and before its body
 * can be read. What an operation learns later, such as the keys in a body, it asks the same `Context.authorizer`.
 * @throws S3Error AccessDenied, NoSuchBucket, MethodNotAllowed for the policy of another account's bucket, and
 *   ServiceUnavailable when the documents cannot be read
 */
export async function authorize(row: Row, head: RequestHead, context: Context): Promise<void> {
  // Policies and ACLs, by the actions that the operation declares (required-actions.ts): answers.ts, decide.ts.
  await decide(row, head, context)
  // The right in the bucket: rights.ts.
  await requireNeeds(row.operation, head, context)
  // The owner of the bucket, if the client names it: expected-owner.ts. It may call the gateway.
  await requireExpectedOwner(head, context)
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
async function decide({ operation, plugin }: Row, head: RequestHead, context: Context): Promise<void> {
  // The token of such a request is for the service behind the call, which decides.
  if (isPassedOn(operation, context.caller, head)) return
  const unsigned = !context.caller && operation.access !== 'public'
  if (unsigned) await refuseRestricted(context.settings, head)
  // What policies see is what the operation does: a value that it could not read decides nothing.
  requireReadable(head, operation)
  const upload = continuesUpload(operation) ? await uploadOf(head, context) : undefined
  const asked = requiredActions(operation, plugin, head, context.plugins.storageClasses, upload)
  await context.authorizer.decide(...asked)
  if (!unsigned || operation.access === 'anonymous') return
  const granted =
    asked.length > 0 &&
    asked.every(({ action, key, more }) => context.authorizer.granted(action, head.bucket ?? '', key, more?.versionId))
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
 * Throws AccessDenied for a caller without the right that the operation needs, NoSuchBucket for an anonymous one. The
 * caller's rights also restrict what the operation then asks of the gateway.
 *
 * A PUT or POST without `needs` keeps the server from starting (src/plugins/check-plugins.ts). The frame of calls
 * (`defineCall`) checks them itself.
 */
async function requireNeeds(operation: AnyOperation, head: RequestHead, context: Context): Promise<void> {
  const { needs } = operation
  const { bucket, key } = head
  if (bucket === undefined || (needs === undefined && !context.caller)) return
  if (needs !== undefined && !context.caller && operation.access === 'anonymous') {
    if (typeof needs === 'object' && 'some' in needs && (await mayOpen(operation, bucket, context))) return
    const granted = key !== undefined && context.authorizer.granted('s3:PutObject', bucket, key)
    return granted ? undefined : requirePublic(needs, bucket, key, context)
  }
  const asked = neededRight(operation)
  if (asked === undefined) return
  if (asked === 'form') {
    if (context.caller) context.checks.requireSome(bucket, 'write')
  } else if ('some' in asked) context.checks.requireSome(bucket, asked.some)
  else if ('key' in asked) context.checks.requireKey(bucket, key ?? '', asked.key)
  else for (const access of asked.bucket) context.checks.requireWholeBucket(bucket, access)
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

/** See Operation.access. Calls the gateway, so it runs after the checks that need no call. */
async function requireOwned(operation: AnyOperation, { bucket }: RequestHead, context: Context): Promise<void> {
  // A call that creates a job checks this itself: a repeated client token must return its job even if the bucket is
  // gone or the gateway is unreachable.
  const asksLater = operation.call?.job !== undefined
  if (operation.access === 'owner' && bucket !== undefined && !asksLater) await context.checks.requireOwner(bucket)
}

/** Throws AccessDenied for an anonymous caller, unless the request was granted. */
function signRequired(): S3Error {
  return new S3Error('AccessDenied', { message: 'Anonymous access is not allowed: sign the request.' })
}

/**
 * Asks for each action of a request, and grants. A class, because each request has one, and most use a single method of
 * it.
 */
export class RequestAuthorizer implements Authorizer {
  readonly #deps: AuthorizerDeps
  readonly #request: AuthorizedRequest
  readonly #grants: Grants
  readonly #account: string | undefined
  #made: Answers | undefined
  #reason: string | undefined
  /** A refusal that says nothing about what is there. */
  #denied = false

  constructor(deps: AuthorizerDeps, request: AuthorizedRequest, grants: Grants) {
    this.#deps = deps
    this.#request = request
    this.#grants = grants
    this.#account = request.caller && canonicalId(request.caller.identity)
  }

  get reason(): string | undefined {
    return this.#reason
  }

  async decide(...asked: readonly RequestedAction[]): Promise<void> {
    const grants = this.#grants
    for (const { action, bucket, key, more } of asked)
      if (grants.any && bucket !== undefined)
        grants.withdraw({ action: action.toLowerCase(), bucket, key, versionId: more?.versionId })
    const found: (Grant | undefined)[] = []
    for (const each of asked) found.push(await this.#one(each))
    if (found.some((grant) => grant === undefined)) return
    for (const grant of found) if (grant) grants.add(grant)
  }

  async requireAction(
    action: string,
    { versionId, ...place }: Parameters<Authorizer['requireAction']>[1],
  ): Promise<void> {
    const more = { ...place.more, versionId }
    const asked = versionId === undefined ? { ...place, action } : { ...place, action: ofVersion(action), more }
    if ((await this.#one(asked)) || place.bucket === undefined) return
    const documents = await this.documents(place.bucket)
    if (documents && documents.owner !== this.#account) throw new S3Error('AccessDenied')
  }

  async requireLasting(asked: RequestedAction): Promise<void> {
    const { caller } = this.#request
    const documents = asked.bucket === undefined ? undefined : await this.documents(asked.bucket)
    if (!documents && !(caller && hasPolicies(caller.identity))) return
    if (await this.#answers().lasts(asked, documents)) return
    this.#reason = `${asked.action}: depends on conditions of a policy`
    throw new S3Error('AccessDenied', {
      message: `A policy with conditions decides ${asked.action} on this key, and what this call returns would drop them.`,
    })
  }

  async missing(failure: S3Error, action: string | undefined, { bucket, key }: ActionResource): Promise<S3Error> {
    const { caller } = this.#request
    if (failure.code !== 'AccessDenied' || bucket === undefined || this.#denied || caller?.identity.rights)
      return failure
    const documents = await this.documents(bucket)
    if (!documents) {
      const own = caller ? undefined : await this.#deps.ownerGateway({ owner: OWN_ID, by: '' })
      if (!own || action === 's3:CreateBucket' || (await own.bucketExists(bucket))) return failure
      return new S3Error('NoSuchBucket', { fields: { BucketName: bucket } })
    }
    const reads = key !== undefined && READS.includes(action?.toLowerCase() ?? '')
    if (!reads || documents.owner === this.#account || !(await this.#mayList(documents, bucket, key))) return failure
    if (await (await this.#asOwnerOf(documents)).stat(bucket, key)) return failure
    return new S3Error('NoSuchKey', { fields: { Key: key } })
  }

  granted(action: string, bucket: string, key?: string, versionId?: string): boolean {
    return this.#grants.find(bucket, key, [action.toLowerCase()], versionId) !== undefined
  }

  async opened(bucket: string): Promise<boolean> {
    const documents = await this.documents(bucket)
    return documents !== undefined && documents.owner !== this.#account
  }

  async canOpen(bucket: string, action: string): Promise<boolean> {
    const policy = (await this.documents(bucket))?.policy
    return policy !== undefined && canOpen(policy.parsed, action)
  }

  async ownerOf(bucket: string): Promise<BucketOwner> {
    if (!this.#grants.asOwner(bucket)) return ownAccount(this.#request.caller)
    const documents = await this.documents(bucket)
    if (!documents) throw new S3Error('AccessDenied')
    return { owner: documents.owner, by: documents.by }
  }

  documents(bucket: string): Promise<ParsedDocuments | undefined> {
    return readDocuments(this.#deps.settings, bucket)
  }

  /** Most requests need none. */
  #answers(): Answers {
    this.#made ??= new Answers(this.#deps, this.#request)
    return this.#made
  }

  /** Returns the grant; undefined where the caller's own account decides. */
  async #one(asked: RequestedAction): Promise<Grant | undefined> {
    const { bucket } = asked
    const { caller } = this.#request
    const documents = bucket === undefined ? undefined : await this.documents(bucket)
    const limited = caller !== undefined && hasPolicies(caller.identity)
    return documents || limited ? this.#byDocuments(asked, documents, limited) : undefined
  }

  async #byDocuments(
    asked: RequestedAction,
    documents: ParsedDocuments | undefined,
    limited: boolean,
  ): Promise<Grant | undefined> {
    const { bucket, key } = asked
    const { caller, asOwner } = this.#request
    const account = this.#account
    const replaces = REPLACES.includes(asked.action.toLowerCase())
    const ofOwner = account !== undefined && (!documents || documents.owner === account)
    const isWhole = ofOwner && !limited && !documents?.policy
    // The last element of a prefix is the begin of a name, such as that of hidden files.
    if (!isWhole && (hasDotElement(key ?? '') || hasDotElement(`${asked.prefix ?? ''}x`))) {
      this.#denied = true
      this.#reason = `${asked.action}: a path element "." or ".."`
      throw new S3Error('AccessDenied', {
        message: 'Policies and ACLs decide on no key with the path element "." or "..", which may be resolved later.',
      })
    }
    const { answered, holdsFor } = await this.#answers().byRecord(asked, documents, !ofOwner && !replaces)
    const { decision, identityAllows, byGateway } = answered
    this.#reason = `${asked.action}: ${decision.outcome}: ${decision.reason}`
    if (decision.outcome === 'explicit deny') {
      this.#denied = true
      if (ofOwner && isRoot(caller) && ON_BUCKET_POLICY.includes(asked.action.toLowerCase())) return undefined
      throw new S3Error('AccessDenied')
    }
    if (decision.outcome === 'implicit deny') {
      if (ofOwner || (limited && !identityAllows())) throw new S3Error('AccessDenied')
      return undefined
    }
    if (ofOwner || byGateway || !documents || bucket === undefined) return undefined
    // https://docs.aws.amazon.com/AmazonS3/latest/API/API_PutBucketPolicy.html: whatever the policy says
    if (ON_BUCKET_POLICY.includes(asked.action.toLowerCase())) throw new S3Error('MethodNotAllowed')
    const mayList = () => this.#mayList(documents, bucket, key)
    const gateway = await this.#asOwnerOf(documents)
    return {
      action: asked.action.toLowerCase(),
      bucket,
      asOwner,
      gateway,
      mayList,
      ...(key !== undefined && { key }),
      ...(asked.more?.versionId !== undefined && { versionId: asked.more.versionId }),
      ...(asked.prefix !== undefined && { prefix: asked.prefix }),
      ...(holdsFor && !replaces && { holdsFor }),
    }
  }

  /** True if a listing of the bucket could tell the caller whether it has the key. */
  async #mayList(documents: ParsedDocuments, bucket: string, key = ''): Promise<boolean> {
    const listing = { action: 's3:ListBucket', bucket, more: { listed: key } }
    return (await this.#answers().to(listing, documents)).decision.outcome === 'allow'
  }

  async #asOwnerOf({ owner, by }: BucketOwner): Promise<Gateway> {
    const gateway = await this.#deps.ownerGateway({ owner, by })
    if (gateway) return gateway
    this.#reason = 'the server has no key pair of the account that owns the bucket'
    throw new S3Error('AccessDenied')
  }
}
