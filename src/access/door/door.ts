import { canonicalId, OWN_ID } from '../../auth/identities/canonical-id.js'
import { S3Error } from '../../common/errors/s3-error.js'
import type { Gateway } from '../../gateway/gateway.js'
import { hasDotElement } from '../../gateway/keys.js'
import { Answers, type Asked, type DoorParts, type DoorRequest, isRoot, ownAccount } from './answers.js'
import { type BucketDocuments, type Owned, readDocuments } from './documents.js'
import { type Grant, type Grants, READS, REPLACES } from './grants.js'
import { hasPolicies } from './identity-policies.js'

/** What an action is asked on; empty for no bucket. */
export type Place = Omit<Asked, 'action'>

/** Decides what one request may do. The one place that asks policies and ACLs. */
export interface Door {
  /**
   * Decides several actions of one request together. Resolves if the caller may do all of them, and also if no document
   * says so: then the caller's own account decides, as for a bucket without documents.
   * @throws S3Error AccessDenied, and ServiceUnavailable when the documents cannot be read
   */
  decide(...asked: readonly Asked[]): Promise<void>
  /**
   * Throws AccessDenied unless the policies of the identity and of the bucket let the caller use the action of a
   * plugin: it may spend, so in the bucket of another account a document must grant it by the name of the plugin.
   * Grants nothing.
   */
  requireAction(action: string, place: Place): Promise<void>
  /**
   * Throws AccessDenied where the caller may use the action only under conditions of a policy: what the caller then
   * gets outlives the request and drops them. To be called after the action was decided.
   */
  requireLasting(asked: Asked): Promise<void>
  /**
   * Resolves to the error for a request that was refused with `failure`: NoSuchBucket for an unsigned one where there
   * is no bucket, NoSuchKey for a read of a key that is not there where the caller may list it, and else `failure`.
   */
  missing(failure: S3Error, action: string | undefined, place: Place): Promise<S3Error>
  /** True if a decision of this request has granted the action to a caller who does not own the bucket. */
  granted(action: string, bucket: string, key?: string): boolean
  /** True if documents of the bucket may grant something to this caller, who does not own it. */
  opened(bucket: string): Promise<boolean>
  /** The owner to record with a document of the bucket: to be called after the owner was checked. */
  ownerOf(bucket: string): Promise<Owned>
  /** The documents of the bucket; undefined for none. */
  documents(bucket: string): Promise<BucketDocuments | undefined>
  /** Reason of the last decision, for the log; undefined if there was none. */
  readonly reason: string | undefined
}

const ON_BUCKET_POLICY = ['s3:getbucketpolicy', 's3:putbucketpolicy', 's3:deletebucketpolicy']

export function openDoor(parts: DoorParts, request: DoorRequest, grants: Grants): Door {
  return new RequestDoor(parts, request, grants)
}

/** A class, because each request has one, and most use a single method of it. */
class RequestDoor implements Door {
  readonly #parts: DoorParts
  readonly #request: DoorRequest
  readonly #grants: Grants
  readonly #account: string | undefined
  #made: Answers | undefined
  #reason: string | undefined
  /** A refusal that says nothing about what is there. */
  #denied = false

  constructor(parts: DoorParts, request: DoorRequest, grants: Grants) {
    this.#parts = parts
    this.#request = request
    this.#grants = grants
    this.#account = request.caller && canonicalId(request.caller.identity)
  }

  get reason(): string | undefined {
    return this.#reason
  }

  async decide(...asked: readonly Asked[]): Promise<void> {
    const grants = this.#grants
    for (const { action, bucket, key } of asked)
      if (grants.any && bucket !== undefined) grants.withdraw({ action: action.toLowerCase(), bucket, key })
    const found: (Grant | undefined)[] = []
    for (const each of asked) found.push(await this.#one(each))
    if (found.some((grant) => grant === undefined)) return
    for (const grant of found) if (grant) grants.add(grant)
  }

  async requireAction(action: string, place: Place): Promise<void> {
    if ((await this.#one({ ...place, action })) || place.bucket === undefined) return
    const documents = await this.documents(place.bucket)
    if (documents && documents.owner !== this.#account) throw new S3Error('AccessDenied')
  }

  async requireLasting(asked: Asked): Promise<void> {
    const { caller } = this.#request
    const documents = asked.bucket === undefined ? undefined : await this.documents(asked.bucket)
    if (!documents && !(caller && hasPolicies(caller.identity))) return
    if (await this.#answers().lasts(asked, documents)) return
    this.#reason = `${asked.action}: depends on conditions of a policy`
    throw new S3Error('AccessDenied', {
      message: `A policy with conditions decides ${asked.action} on this key, and what this call returns would drop them.`,
    })
  }

  async missing(failure: S3Error, action: string | undefined, { bucket, key }: Place): Promise<S3Error> {
    const { caller } = this.#request
    if (failure.code !== 'AccessDenied' || bucket === undefined || this.#denied || caller?.identity.rights)
      return failure
    const documents = await this.documents(bucket)
    if (!documents) {
      const own = caller ? undefined : await this.#parts.ownerGateway({ owner: OWN_ID, by: '' })
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

  async ownerOf(bucket: string): Promise<Owned> {
    if (!this.#grants.asOwner(bucket)) return ownAccount(this.#request.caller)
    const documents = await this.documents(bucket)
    if (!documents) throw new S3Error('AccessDenied')
    return { owner: documents.owner, by: documents.by }
  }

  documents(bucket: string): Promise<BucketDocuments | undefined> {
    return readDocuments(this.#parts.settings, bucket)
  }

  /** Most requests need none. */
  #answers(): Answers {
    this.#made ??= new Answers(this.#parts, this.#request)
    return this.#made
  }

  /** Returns the grant; undefined where the caller's own account decides. */
  async #one(asked: Asked): Promise<Grant | undefined> {
    const { bucket } = asked
    const { caller } = this.#request
    const documents = bucket === undefined ? undefined : await this.documents(bucket)
    const limited = caller !== undefined && hasPolicies(caller.identity)
    return documents || limited ? this.#byDocuments(asked, documents, limited) : undefined
  }

  async #byDocuments(
    asked: Asked,
    documents: BucketDocuments | undefined,
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
    const { record, answered } = await this.#answers().byRecord(asked, documents, !ofOwner && !replaces)
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
      ...(record && !replaces && { record }),
    }
  }

  /** True if a listing of the bucket could tell the caller whether it has the key. */
  async #mayList(documents: BucketDocuments, bucket: string, key = ''): Promise<boolean> {
    const listing = { action: 's3:ListBucket', bucket, more: { listed: key } }
    return (await this.#answers().to(listing, documents)).decision.outcome === 'allow'
  }

  async #asOwnerOf({ owner, by }: Owned): Promise<Gateway> {
    const gateway = await this.#parts.ownerGateway({ owner, by })
    if (gateway) return gateway
    this.#reason = 'the server has no key pair of the account that owns the bucket'
    throw new S3Error('AccessDenied')
  }
}
