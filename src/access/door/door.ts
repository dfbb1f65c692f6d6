import type { Caller } from '../../auth/caller.js'
import { canonicalId, OWN_ID } from '../../auth/identities/canonical-id.js'
import { S3Error } from '../../common/errors/s3-error.js'
import type { Gateway } from '../../gateway/gateway.js'
import type { RequestHead } from '../../request/s3-request.js'
import type { BucketSettings } from '../../state/records/bucket-settings.js'
import type { ObjectRecord, State } from '../../state/state.js'
import { type Decision, type Documents, decide } from '../decision/decide.js'
import type { Principal } from '../decision/question.js'
import { arnOf, conditionsOf, type More } from './conditions.js'
import { isCurrent } from './current-record.js'
import { type BucketDocuments, type Owned, readDocuments } from './documents.js'
import { type Grant, type Grants, REPLACES } from './grants.js'
import { hasPolicies, policiesOf, sessionPolicyOf } from './identity-policies.js'
import type { OwnerGateway } from './owner-gateway.js'

/** One action on one resource. */
export interface Asked {
  readonly action: string
  /** Absent for an action on no bucket. */
  readonly bucket?: string | undefined
  readonly key?: string | undefined
  /** The prefix of a listing. */
  readonly prefix?: string | undefined
  readonly more?: Pick<More, 'requested' | 'headers' | 'unasked'> | undefined
}

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

export interface DoorParts {
  readonly settings: Pick<BucketSettings, 'get'>
  readonly state: Pick<State, 'objects'>
  readonly ownerGateway: OwnerGateway
}

export interface DoorRequest {
  readonly caller: Caller | undefined
  /** Absent for work without a request. */
  readonly head: RequestHead | undefined
  /** The operation changes data that only this server keeps: see Operation.access. */
  readonly asOwner: boolean
}

const ON_BUCKET_POLICY = ['s3:getbucketpolicy', 's3:putbucketpolicy', 's3:deletebucketpolicy']
const OF_UPLOADS = ['s3:abortmultipartupload', 's3:listmultipartuploadparts']
const NO_BLOCK = {
  blockPublicAcls: false,
  ignorePublicAcls: false,
  blockPublicPolicy: false,
  restrictPublicBuckets: false,
}

export function openDoor(parts: DoorParts, request: DoorRequest, grants: Grants): Door {
  return new RequestDoor(parts, request, grants)
}

/** A class, because each request has one, and most use a single method of it. */
class RequestDoor implements Door {
  readonly #parts: DoorParts
  readonly #request: DoorRequest
  readonly #grants: Grants
  readonly #account: string | undefined
  #reason: string | undefined

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

  granted(action: string, bucket: string, key?: string): boolean {
    return this.#grants.find(bucket, key, [action.toLowerCase()]) !== undefined
  }

  async opened(bucket: string): Promise<boolean> {
    const documents = await this.documents(bucket)
    return documents !== undefined && documents.owner !== this.#account
  }

  async ownerOf(bucket: string): Promise<Owned> {
    if (!this.#grants.asOwner(bucket)) return this.#ownAccount()
    const documents = await this.documents(bucket)
    if (!documents) throw new S3Error('AccessDenied')
    return { owner: documents.owner, by: documents.by }
  }

  documents(bucket: string): Promise<BucketDocuments | undefined> {
    return readDocuments(this.#parts.settings, bucket)
  }

  async #answer(asked: Asked, documents: BucketDocuments | undefined, record: ObjectRecord | undefined) {
    const { caller, head } = this.#request
    const owner = documents?.owner ?? this.#account ?? OWN_ID
    const conditions = conditionsOf(head, caller, { ...asked.more, owner, stored: record?.tags })
    const question = { principal: this.#principal(), action: asked.action, resource: resourceOf(asked), conditions }
    const given: Documents = {
      owner,
      policy: documents?.policy?.parsed,
      bucketAcl: documents?.acl,
      objectAcl: record?.acl,
      ownership: documents?.ownership ?? 'BucketOwnerEnforced',
      block: documents && asked.bucket !== undefined ? await this.#blockOf(asked.bucket) : NO_BLOCK,
      identityPolicies: caller && policiesOf(caller.identity),
      sessionPolicy: caller && sessionPolicyOf(caller.identity),
    }
    const decision = decide(question, given)
    const delegated = documents?.policy?.delegated === true && decision.outcome === 'allow'
    return {
      decision,
      identityAllows: () => identityOnly(question, given),
      /** The gateway's rules allow the same, and decide. */
      byGateway: delegated && decide(question, { ...given, policy: undefined }).outcome !== 'allow',
    }
  }

  #principal(): Principal {
    const { caller } = this.#request
    if (this.#account === undefined) return { kind: 'anonymous' }
    return { kind: 'account', account: this.#account, arn: arnOf(caller), root: isRoot(caller) }
  }

  async #blockOf(bucket: string): Promise<Documents['block']> {
    const block = await this.#parts.settings.get(bucket, 'publicAccessBlock')
    if (!block) return NO_BLOCK
    return {
      blockPublicAcls: block.BlockPublicAcls,
      ignorePublicAcls: block.IgnorePublicAcls,
      blockPublicPolicy: block.BlockPublicPolicy,
      restrictPublicBuckets: block.RestrictPublicBuckets,
    }
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
    const { record, answered } = await this.#answerByRecord(asked, documents, !ofOwner && !replaces)
    const { decision, identityAllows, byGateway } = answered
    this.#reason = `${asked.action}: ${decision.outcome}: ${decision.reason}`
    if (decision.outcome === 'explicit deny') {
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
    const mayList = async () =>
      (await this.#answer({ action: 's3:ListBucket', bucket, more: { unasked: true } }, documents, undefined)).decision
        .outcome === 'allow'
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

  #ownAccount(): Owned {
    const { caller } = this.#request
    return { owner: this.#account ?? OWN_ID, by: caller?.identity.account ? caller.identity.accessKeyId : '' }
  }

  async #asOwnerOf({ owner, by }: Owned): Promise<Gateway> {
    const gateway = await this.#parts.ownerGateway({ owner, by })
    if (gateway) return gateway
    this.#reason = 'the server has no key pair of the account that owns the bucket'
    throw new S3Error('AccessDenied')
  }

  /**
   * Answers by the record, if the object has one and it is about the present object. The gateway is asked for that only
   * where it can change the outcome.
   * @param ties an allowance becomes a grant for exactly the object of the record, so nothing stale can be granted
   */
  async #answerByRecord(asked: Asked, documents: BucketDocuments | undefined, ties: boolean) {
    const record = await this.#recordOf(documents, asked)
    const answered = await this.#answer(asked, documents, record)
    if (!record) return { record, answered }
    const without = await this.#answer(asked, documents, undefined)
    const { outcome } = answered.decision
    const isTied = ties && outcome === 'allow'
    const isSame = outcome === without.decision.outcome
    // Tied to a stale record, a grant that holds without it would not open the present object.
    if (isSame !== isTied) return { record, answered }
    const gateway = await this.#parts.ownerGateway(documents ?? this.#ownAccount())
    return !gateway || (await isCurrent(gateway, record)) ? { record, answered } : { answered: without }
  }

  /** Reads the record where the decision can depend on it. */
  async #recordOf(
    documents: BucketDocuments | undefined,
    { action, bucket, key }: Asked,
  ): Promise<ObjectRecord | undefined> {
    const { caller } = this.#request
    const name = action.toLowerCase()
    if (bucket === undefined || key === undefined || OF_UPLOADS.includes(name)) return undefined
    const own = caller ? [...(policiesOf(caller.identity) ?? []), sessionPolicyOf(caller.identity)] : []
    const policies = [documents?.policy?.parsed, ...own]
    const byTags = policies.some((policy) => policy?.byTags)
    // WRITE of a bucket lets other accounts delete their own objects; no ACL of an object matters to a write.
    const byAcl = name === 's3:deleteobject' ? documents?.owner !== this.#account : name !== 's3:putobject'
    const matters = byTags || (byAcl && documents !== undefined && documents.ownership !== 'BucketOwnerEnforced')
    return matters ? this.#parts.state.objects.get(bucket, key) : undefined
  }
}

/** True for a key pair that stands for its whole account. */
function isRoot(caller: Caller | undefined): boolean {
  return caller !== undefined && !caller.identity.rights && !hasPolicies(caller.identity)
}

function identityOnly(question: Parameters<typeof decide>[0], { identityPolicies, sessionPolicy }: Documents): boolean {
  if (question.principal.kind !== 'account') return false
  const own: Documents = {
    owner: question.principal.account,
    ownership: 'BucketOwnerEnforced',
    block: NO_BLOCK,
    identityPolicies,
    sessionPolicy,
  }
  return (decide(question, own) satisfies Decision).outcome === 'allow'
}

function resourceOf({ bucket, key }: Asked): string {
  if (bucket === undefined) return 'arn:aws:s3:::'
  return key === undefined ? `arn:aws:s3:::${bucket}` : `arn:aws:s3:::${bucket}/${key}`
}
