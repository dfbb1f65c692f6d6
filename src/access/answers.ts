import { S3Error } from '../../common/errors/s3-error.js'
import type { BucketOwner, RequestedAction } from '../api/access.js'
import type { Gateway, GatewayObject } from '../api/gateway.js'
import type { Caller } from '../api/identity.js'
import type { ObjectRecord } from '../api/object-records.js'
import type { RequestHead } from '../api/request.js'
import type { BucketSettings } from '../api/settings.js'
import type { State } from '../api/state.js'
import { canonicalId, OWN_ID } from '../auth/credentials.js'
import { MARKER_REVISION } from '../gateway/object-facts.js'
import { confirmed, decidingRecord, isUnconfirmed, recordOfVersion, validRecord } from '../objects/object-record.js'
import { arnOf, conditionsOf } from './conditions.js'
import { type Decision, type Documents, decide } from './decide.js'
import { hasPolicies, type ParsedDocuments, policiesOf, sessionPoliciesOf } from './documents.js'
import type { OwnerGateway } from './grants.js'
import { lasting, ofAnyTags, type Policy } from './policy.js'
import type { Principal } from './question.js'

export interface AuthorizerDeps {
  readonly settings: Pick<BucketSettings, 'get'>
  readonly state: Pick<State, 'objects'>
  readonly ownerGateway: OwnerGateway
}

export interface AuthorizedRequest {
  readonly caller: Caller | undefined
  /** Absent for work without a request. */
  readonly head: RequestHead | undefined
  /** The operation changes data that only this server keeps: see Operation.access. */
  readonly asOwner: boolean
}

interface DocumentsAnswer {
  readonly decision: Decision
  readonly identityAllows: () => boolean
  /** The outcome by those statements alone that hold whatever a later request is like. */
  readonly lastingOutcome: () => Decision['outcome']
  /** True if another outcome is possible by the tags of the object. */
  readonly dependsOnTags: () => boolean
  /** The gateway's rules allow the same, and decide. */
  readonly byGateway: boolean
}

interface AnswerByRecord {
  readonly answered: DocumentsAnswer
  /** True if the object that the gateway shows is allowed, too. Absent where no record matters. */
  readonly holdsFor?: (object: GatewayObject) => Promise<boolean>
}

interface VersionTarget {
  readonly bucket: string
  readonly key: string
  readonly versionId: string
  readonly gateway: Gateway
}

const OF_UPLOADS = ['s3:abortmultipartupload', 's3:listmultipartuploadparts']
/** Decided by no ACL of an object. */
const OF_NO_ACL = ['s3:putobject', 's3:deleteobjectversion', 's3:putobjectretention', 's3:putobjectlegalhold']
const NO_BLOCK = { ignorePublicAcls: false, restrictPublicBuckets: false }

/** Asks the documents of buckets, ACLs and policies of identities for one request. */
export class Answers {
  readonly #deps: AuthorizerDeps
  readonly #request: AuthorizedRequest
  readonly #account: string | undefined

  constructor(deps: AuthorizerDeps, request: AuthorizedRequest) {
    this.#deps = deps
    this.#request = request
    this.#account = request.caller && canonicalId(request.caller.identity)
  }

  /** What the documents and the policies of the caller say. */
  async to(
    asked: RequestedAction,
    documents: ParsedDocuments | undefined,
    record?: ObjectRecord,
  ): Promise<DocumentsAnswer> {
    const { caller, head } = this.#request
    const owner = documents?.owner ?? this.#account ?? OWN_ID
    const conditions = conditionsOf(head, caller, { ...asked.more, owner, stored: record?.tags })
    const { action, more } = asked
    const resource = resourceOf(asked)
    const question = { principal: this.#principal(), action, resource, conditions, ofNew: more?.ofNew }
    const given: Documents = {
      owner,
      policy: documents?.policy?.parsed,
      bucketAcl: documents?.acl,
      objectAcl: record?.acl,
      ownership: documents?.ownership ?? 'BucketOwnerEnforced',
      block: documents && asked.bucket !== undefined ? await this.#blockOf(asked.bucket) : NO_BLOCK,
      identityPolicies: caller && policiesOf(caller.identity),
      sessionPolicies: caller && sessionPoliciesOf(caller.identity),
    }
    const decision = decide(question, given)
    // The rules of the gateway are about current objects.
    const ofVersions = more?.versionId !== undefined || action.toLowerCase() === 's3:listbucketversions'
    const isRule = documents?.policy?.delegated === true && !ofVersions
    const delegated = isRule && decision.outcome === 'allow'
    const outcomeBy = (change: (policy: Policy) => Policy) =>
      decide(question, {
        ...given,
        policy: given.policy && change(given.policy),
        identityPolicies: given.identityPolicies?.map(change),
        sessionPolicies: given.sessionPolicies?.map(change),
      }).outcome
    return {
      decision,
      identityAllows: () => identityOnly(question, given),
      lastingOutcome: () => outcomeBy(lasting),
      dependsOnTags: () =>
        outcomeBy((policy) => ofAnyTags(policy, 'most')) === 'allow' &&
        outcomeBy((policy) => ofAnyTags(policy, 'least')) !== 'allow',
      byGateway: delegated && decide(question, { ...given, policy: undefined }).outcome !== 'allow',
    }
  }

  /** True if a later request like this, of another time and from another address, gets the same outcome. */
  async lasts(asked: RequestedAction, documents: ParsedDocuments | undefined): Promise<boolean> {
    const { decision, lastingOutcome } = (await this.byRecord(asked, documents, false)).answered
    return decision.outcome === lastingOutcome()
  }

  /**
   * Answers by the record of the object, if it has one that is about the present object. The gateway is asked for that
   * only where it can change the outcome.
   * @param ties an allowance becomes a grant for exactly the object that is decided on, so nothing stale can be granted
   */
  async byRecord(
    asked: RequestedAction,
    documents: ParsedDocuments | undefined,
    ties: boolean,
  ): Promise<AnswerByRecord> {
    const { bucket, key, more } = asked
    const matters = this.#matters(documents, asked)
    if (!matters || bucket === undefined || key === undefined) return { answered: await this.to(asked, documents) }
    const versionId = more?.versionId
    const gatewayOfVersions = versionId === undefined ? undefined : await this.#ofVersions(documents)
    if (versionId !== undefined && gatewayOfVersions)
      return this.#byVersion(asked, documents, { bucket, key, versionId, gateway: gatewayOfVersions })
    const by = async (record: ObjectRecord | undefined): Promise<AnswerByRecord> => ({
      answered: await this.to(asked, documents, record),
      holdsFor: async (object) => {
        const own = await recordOfVersion(this.#deps.state.objects, bucket, object, record)
        if (own && !validRecord(object, confirmed(object, own))) return false
        const deciding = decidingRecord(bucket, object, own)
        return deciding === record || (await this.to(asked, documents, deciding)).decision.outcome === 'allow'
      },
    })
    const stored = await this.#deps.state.objects.get(bucket, key)
    const given = await by(stored)
    const { answered } = given
    const without = stored ? await this.to(asked, documents) : answered
    const { outcome } = answered.decision
    const isTied = ties && outcome === 'allow'
    const isSame = outcome === without.decision.outcome
    // Tied to a stale record, a grant that holds without it would not open the present object.
    const mayBeStale = stored !== undefined && isSame === isTied
    // A tag may refuse what its absence allows: it counts from the moment of its object on, if the gateway keeps it.
    const byTags = matters.byTags && (answered.dependsOnTags() || without.dependsOnTags())
    if (!mayBeStale && !byTags) return given
    const gateway = await this.#deps.ownerGateway(documents ?? ownAccount(this.#request.caller))
    if (!gateway || (!mayBeStale && !(await gateway.features()).objectRecords)) return given
    try {
      const object = await gateway.stat(bucket, key)
      return await by(
        presentRecord(
          bucket,
          object,
          object ? await recordOfVersion(this.#deps.state.objects, bucket, object, stored) : stored,
        ),
      )
    } catch (error) {
      // The operation itself meets the same refusal, or needs no look.
      if (error instanceof S3Error && error.status < 500) return given
      throw error
    }
  }

  /** Answers by the record of a version. */
  async #byVersion(
    asked: RequestedAction,
    documents: ParsedDocuments | undefined,
    { bucket, key, versionId, gateway }: VersionTarget,
  ): Promise<AnswerByRecord> {
    const deciding = async (object: GatewayObject) => {
      const record = await this.#deps.state.objects.ofRevision(bucket, key, object.revision)
      return decidingRecord(bucket, object, confirmed(object, record))
    }
    const object = await gateway.stat(bucket, key, { id: versionId }).catch((error) => {
      // The operation itself meets the same refusal.
      if (error instanceof S3Error && error.status < 500) return undefined
      throw error
    })
    return {
      answered: await this.to(asked, documents, object && (await deciding(object))),
      holdsFor: async (seen) =>
        seen.revision === object?.revision ||
        (await this.to(asked, documents, await deciding(seen))).decision.outcome === 'allow',
    }
  }

  /** The account that owns the bucket, where the gateway has versions. */
  async #ofVersions(documents: ParsedDocuments | undefined): Promise<Gateway | undefined> {
    const gateway = await this.#deps.ownerGateway(documents ?? ownAccount(this.#request.caller))
    return gateway && (await gateway.features()).versions ? gateway : undefined
  }

  /** Undefined where no record of an object can matter. */
  #matters(
    documents: ParsedDocuments | undefined,
    { action, bucket, key, more }: RequestedAction,
  ): { readonly byTags: boolean } | undefined {
    const { caller } = this.#request
    const name = action.toLowerCase()
    if (bucket === undefined || key === undefined || OF_UPLOADS.includes(name)) return undefined
    const own = caller ? [...(policiesOf(caller.identity) ?? []), ...sessionPoliciesOf(caller.identity)] : []
    const byTags = [documents?.policy?.parsed, ...own].some((policy) => policy?.byTags)
    // WRITE of a bucket lets other accounts delete their own objects; no ACL of an object matters to a write.
    const byAcl = name === 's3:deleteobject' ? documents?.owner !== this.#account : !OF_NO_ACL.includes(name)
    const enabled = documents !== undefined && documents.ownership !== 'BucketOwnerEnforced'
    return byTags || (byAcl && !more?.ofNew && enabled) ? { byTags } : undefined
  }

  #principal(): Principal {
    const { caller } = this.#request
    if (this.#account === undefined) return { kind: 'anonymous' }
    return { kind: 'account', account: this.#account, arn: arnOf(caller), root: isRoot(caller) }
  }

  async #blockOf(bucket: string): Promise<Documents['block']> {
    const block = await this.#deps.settings.get(bucket, 'publicAccessBlock')
    if (!block) return NO_BLOCK
    return { ignorePublicAcls: block.IgnorePublicAcls, restrictPublicBuckets: block.RestrictPublicBuckets }
  }
}

/** The account of the caller, as the owner of what it makes. */
export function ownAccount(caller: Caller | undefined): BucketOwner {
  const owner = caller ? canonicalId(caller.identity) : OWN_ID
  return { owner, by: caller?.identity.account ? caller.identity.accessKeyId : '' }
}

/** True for a key pair that stands for its whole account. */
export function isRoot(caller: Caller | undefined): boolean {
  return caller !== undefined && !caller.identity.rights && !hasPolicies(caller.identity)
}

function identityOnly(
  question: Parameters<typeof decide>[0],
  { identityPolicies, sessionPolicies }: Documents,
): boolean {
  if (question.principal.kind !== 'account') return false
  const own: Documents = {
    owner: question.principal.account,
    ownership: 'BucketOwnerEnforced',
    block: NO_BLOCK,
    identityPolicies,
    sessionPolicies,
  }
  return (decide(question, own) satisfies Decision).outcome === 'allow'
}

function resourceOf({ bucket, key }: RequestedAction): string {
  if (bucket === undefined) return 'arn:aws:s3:::'
  return key === undefined ? `arn:aws:s3:::${bucket}` : `arn:aws:s3:::${bucket}/${key}`
}

/**
 * The record of the present object: a write that needs no record leaves the one of the replaced object. A record that
 * still lacks its revision counts, so that a restriction never lapses.
 */
function presentRecord(
  bucket: string,
  object: GatewayObject | undefined,
  stored: ObjectRecord | undefined,
): ObjectRecord | undefined {
  // A legacy gateway does not show the marker of a folder that has content.
  if (!object) return stored?.revision === MARKER_REVISION ? stored : undefined
  const known = confirmed(object, stored)
  return decidingRecord(bucket, object, known) ?? (isUnconfirmed(known, object) ? known : undefined)
}
