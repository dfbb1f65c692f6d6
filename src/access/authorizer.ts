import { S3Error } from '../../common/errors/s3-error.js'
import type { ActionResource, Authorizer, BucketOwner, RequestedAction } from '../api/access.js'
import type { Gateway } from '../api/gateway.js'
import { canonicalId, OWN_ID } from '../auth/credentials.js'
import { hasDotElement } from '../gateway/keys.js'
import { Answers, type AuthorizedRequest, type AuthorizerDeps, isRoot, ownAccount } from './answers.js'
import { ON_BUCKET_POLICY } from './decide.js'
import { hasPolicies, type ParsedDocuments, readDocuments } from './documents.js'
import { type Grant, type Grants, READS, REPLACES } from './grants.js'
import { canOpen } from './policy.js'
import { ofVersion } from './required-actions.js'

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
