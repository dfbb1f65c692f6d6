import type { ActionResource, Authorizer, Owned, RequestedAction, Tag } from '../api/access.js'
import type { StorageClasses } from '../api/context.js'
import type { Gateway } from '../api/gateway.js'
import type { AnyOperation } from '../api/operation.js'
import type { RequestHead } from '../api/request.js'
import type { UploadRecord } from '../api/state.js'
import { canonicalId, OWN_ID } from '../auth/identities/credentials.js'
import { S3Error } from '../common/errors/s3-error.js'
import { hasDotElement } from '../gateway/keys.js'
import { actionNames } from '../plugins/actions.js'
import { isHotClass } from '../plugins/storage-class.js'
import { Answers, type AuthorizedRequest, type AuthorizerDeps, isRoot, ownAccount } from './answers.js'
import { hasPolicies, type ParsedDocuments, readDocuments } from './documents.js'
import { type Grant, type Grants, READS, REPLACES } from './grants.js'
import { canOpen } from './policy.js'

const ON_BUCKET_POLICY = ['s3:getbucketpolicy', 's3:putbucketpolicy', 's3:deletebucketpolicy']

export function openAuthorizer(deps: AuthorizerDeps, request: AuthorizedRequest, grants: Grants): Authorizer {
  return new RequestAuthorizer(deps, request, grants)
}

/** A class, because each request has one, and most use a single method of it. */
class RequestAuthorizer implements Authorizer {
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
    for (const { action, bucket, key } of asked)
      if (grants.any && bucket !== undefined) grants.withdraw({ action: action.toLowerCase(), bucket, key })
    const found: (Grant | undefined)[] = []
    for (const each of asked) found.push(await this.#one(each))
    if (found.some((grant) => grant === undefined)) return
    for (const grant of found) if (grant) grants.add(grant)
  }

  async requireAction(action: string, place: ActionResource): Promise<void> {
    if ((await this.#one({ ...place, action })) || place.bucket === undefined) return
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

  granted(action: string, bucket: string, key?: string): boolean {
    return this.#grants.find(bucket, key, [action.toLowerCase()]) !== undefined
  }

  async opened(bucket: string): Promise<boolean> {
    const documents = await this.documents(bucket)
    return documents !== undefined && documents.owner !== this.#account
  }

  async canOpen(bucket: string, action: string): Promise<boolean> {
    const policy = (await this.documents(bucket))?.policy
    return policy !== undefined && canOpen(policy.parsed, action)
  }

  async ownerOf(bucket: string): Promise<Owned> {
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
      ...(asked.prefix !== undefined && { prefix: asked.prefix }),
      ...(holdsFor && !replaces && { holdsFor }),
    }
  }

  /** True if a listing of the bucket could tell the caller whether it has the key. */
  async #mayList(documents: ParsedDocuments, bucket: string, key = ''): Promise<boolean> {
    const listing = { action: 's3:ListBucket', bucket, more: { listed: key } }
    return (await this.#answers().to(listing, documents)).decision.outcome === 'allow'
  }

  async #asOwnerOf({ owner, by }: Owned): Promise<Gateway> {
    const gateway = await this.#deps.ownerGateway({ owner, by })
    if (gateway) return gateway
    this.#reason = 'the server has no key pair of the account that owns the bucket'
    throw new S3Error('AccessDenied')
  }
}

/** ACLs that give only the owner of the bucket more: they need no right to set ACLs. */
const OWN_ACLS = ['private', 'bucket-owner-full-control', 'bucket-owner-read']

/**
 * Returns the actions that a request asks for on its own resource: those of its operation, and those that its headers
 * add to a write. Actions on other resources, and on keys in the body, are for the operation to ask.
 */
export function requiredActions(
  operation: AnyOperation,
  plugin: string,
  head: RequestHead,
  classes: StorageClasses,
  tagsOf: (headers: RequestHead['headers']) => readonly Tag[] | undefined,
  upload?: Pick<UploadRecord, 'asked' | 'tags'>,
): readonly RequestedAction[] {
  const { action } = operation
  if (typeof action === 'object' && 'each' in action) return []
  const { bucket, key, headers } = head
  const names = [...actionNames(action, plugin)]
  const writes = names.includes('s3:PutObject') && (operation.on.query ?? []).every((name) => name === 'uploads')
  if (writes) names.push(...(ofHeaders(headers, classes) as typeof names))
  const prefix = key === undefined ? (head.query.get('prefix') ?? '') : undefined
  const requested = writes ? tagsOf(headers) : upload?.tags
  const more = upload ? { requested, headers: headersOfPart(headers, upload) } : requested && { requested }
  return names.map((name) => ({ bucket, key, prefix, ...ofWrite(name, more, writes) }))
}

/** An action and its facts: the ACL that a write sets is that of the object which it makes. */
export function ofWrite(
  action: string,
  more: RequestedAction['more'],
  writes = true,
): Pick<RequestedAction, 'action' | 'more'> {
  const all = writes && action === 's3:PutObjectAcl' ? { ...more, ofNew: true } : more
  return { action, ...(all && { more: all }) }
}

/** True for a request that continues a multipart upload: the upload's own headers describe the object. */
export function continuesUpload({ action, on }: AnyOperation): boolean {
  return action === 's3:PutObject' && (on.query ?? []).includes('uploadId')
}

const OF_UPLOAD = /^x-amz-(acl|grant-.*|storage-class)$/

/** The headers of the request that begins a multipart upload by which conditions judge its later requests, too. */
export function headersOfUpload(headers: RequestHead['headers']): Readonly<Record<string, string>> {
  return Object.fromEntries(
    Object.entries(headers).flatMap(([name, value]) => (OF_UPLOAD.test(name) ? [[name, String(value)]] : [])),
  )
}

/** What a later request claims about the object has no effect, so no condition holds by it. */
function headersOfPart(headers: RequestHead['headers'], { asked }: Pick<UploadRecord, 'asked'>) {
  const own = Object.entries(headers).filter(([name]) => !OF_UPLOAD.test(name))
  return { ...Object.fromEntries(own), ...asked }
}

/** True if the headers of a write hold an ACL that needs the right to set ACLs. */
export function givesMore(headers: RequestHead['headers']): boolean {
  const acl = headers['x-amz-acl']
  const grants = Object.keys(headers).some((name) => name.startsWith('x-amz-grant-'))
  return grants || (acl !== undefined && !OWN_ACLS.includes(String(acl)))
}

/** Returns the actions that the headers of a write need besides `s3:PutObject`. */
export function ofHeaders(headers: RequestHead['headers'], classes: StorageClasses): string[] {
  const names: string[] = []
  if (givesMore(headers)) names.push('s3:PutObjectAcl')
  if (headers['x-amz-tagging'] !== undefined) names.push('s3:PutObjectTagging')
  if (String(headers['x-amz-bypass-governance-retention']).toLowerCase() === 'true')
    names.push('s3:BypassGovernanceRetention')
  const storageClass = headers['x-amz-storage-class']
  if (storageClass !== undefined && !isHotClass(String(storageClass))) {
    const paid = classes.get(String(storageClass))?.action
    if (paid !== undefined) names.push(paid)
  }
  return names
}

/** Throws AccessDenied for an anonymous caller, unless the request was granted. */
export function signRequired(): S3Error {
  return new S3Error('AccessDenied', { message: 'Anonymous access is not allowed: sign the request.' })
}
