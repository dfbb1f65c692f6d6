import type { Acl, Ownership } from '../api/access.js'
import { evaluateAcl } from './acl.js'
import { isRoot } from './language/principals.js'
import { evaluatePolicy, isPublic, type Policy } from './policy.js'
import type { Question, Verdict } from './question.js'

/** https://docs.aws.amazon.com/AmazonS3/latest/API/API_PublicAccessBlockConfiguration.html, as far as it decides. */
interface PublicAccessBlock {
  readonly ignorePublicAcls: boolean
  readonly restrictPublicBuckets: boolean
}

/** Everything that a decision depends on besides the question. */
export interface Documents {
  /** Canonical id of the account that owns the bucket; for actions on no bucket, the account that they are about. */
  readonly owner: string
  readonly policy?: Policy | undefined
  readonly bucketAcl?: Acl | undefined
  /** ACL of the object that the question names; absent if there is no such object, or none of its own was stored. */
  readonly objectAcl?: Acl | undefined
  readonly ownership: Ownership
  readonly block: PublicAccessBlock
  /** Policies of the identity that asks. Absent: it has all rights of its account. Empty: none. */
  readonly identityPolicies?: readonly Policy[] | undefined
  /** They limit what a session may do, each of them; they never give anything by themselves. */
  readonly sessionPolicies?: readonly Policy[] | undefined
}

export interface Decision {
  readonly outcome: 'allow' | 'explicit deny' | 'implicit deny'
  /** For the log, never for the client. */
  readonly reason: string
}

/** Actions that the account of the owner alone has, and its root whatever the policy denies. */
export const ON_BUCKET_POLICY: readonly string[] = ['s3:getbucketpolicy', 's3:putbucketpolicy', 's3:deletebucketpolicy']

/** Object actions that the owner of the bucket decides on, even on objects of other accounts. */
const OF_BUCKET = [
  's3:putobject',
  's3:deleteobject',
  's3:deleteobjectversion',
  's3:abortmultipartupload',
  's3:listmultipartuploadparts',
  's3:restoreobject',
  's3:putobjectretention',
  's3:putobjectlegalhold',
  's3:bypassgovernanceretention',
  // Rules of the bucket's owner select objects by tags.
  's3:putobjecttagging',
  's3:putobjectversiontagging',
  's3:deleteobjecttagging',
  's3:deleteobjectversiontagging',
]

/**
 * Decides one request.
 *
 * https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_policies_evaluation-logic.html
 * https://docs.aws.amazon.com/AmazonS3/latest/userguide/how-s3-evaluates-access-control.html
 */
export function decide(question: Question, documents: Documents): Decision {
  const { principal } = question
  const action = question.action.toLowerCase()
  const ofBucketOwner = principal.kind === 'account' && principal.account === documents.owner

  const byPolicy: Verdict = documents.policy
    ? evaluatePolicy(documents.policy, question)
    : { effect: 'none', reason: 'the bucket has no policy' }
  const byIdentity: Verdict = allOf(documents.identityPolicies, question)
  const bySession: Verdict = eachOf(documents.sessionPolicies ?? [], question)

  if (byIdentity.effect === 'deny') return explicit('a policy of the identity', byIdentity)
  if (bySession.effect === 'deny') return explicit('the policy of the session', bySession)
  const mayUnlock = ofBucketOwner && isRoot(principal) && ON_BUCKET_POLICY.includes(action)
  if (byPolicy.effect === 'deny' && !mayUnlock) return explicit('the bucket policy', byPolicy)
  if (bySession.effect !== 'allow') return implicit('the policy of the session does not allow it')

  const usesAcls = documents.ownership !== 'BucketOwnerEnforced'
  const isOfAccount = ofBucketOwner || principal.kind === 'service'
  if (!isOfAccount && documents.block.restrictPublicBuckets && documents.policy && isPublic(documents.policy))
    return implicit('RestrictPublicBuckets limits a bucket with a public policy to the account of its owner')

  const objectAcl = question.ofNew ? undefined : documents.objectAcl
  const objectOwner = usesAcls && objectAcl ? objectAcl.owner : documents.owner
  const isOfBucket = objectOwner === documents.owner || !question.resource.includes('/') || isOfBucketOwner(action)
  const owner = isOfBucket ? documents.owner : objectOwner
  const ofOwner = principal.kind === 'account' && principal.account === owner

  if (ofOwner && byIdentity.effect === 'allow')
    return { outcome: 'allow', reason: `of the owner: ${byIdentity.reason}` }
  if (principal.kind === 'account' && !ofOwner && byIdentity.effect !== 'allow')
    return implicit(`another account's resource, and ${byIdentity.reason}`)

  // A bucket policy gives nothing of an object that another account owns.
  const grants: Verdict[] = isOfBucket ? [byPolicy] : []
  if (usesAcls) {
    const { ignorePublicAcls: ignorePublic } = documents.block
    // An account that may write an object by the ACL of the bucket owns what it writes, and sets the ACL of that.
    const asked = question.ofNew ? { ...question, action: 's3:PutObject' } : question
    grants.push(evaluateAcl(documents.bucketAcl, objectAcl, asked, { ignorePublic }))
  }
  for (const { effect, to, reason } of grants) {
    if (effect !== 'allow') continue
    if (to === 'account' && byIdentity.effect !== 'allow') continue
    return { outcome: 'allow', reason }
  }
  return implicit([byIdentity, ...grants].map(({ reason }) => reason).join('; '))
}

function allOf(policies: readonly Policy[] | undefined, question: Question): Verdict {
  if (policies === undefined) return { effect: 'allow', reason: 'the identity has all rights of its account' }
  const verdicts = policies.map((policy) => evaluatePolicy(policy, question))
  return (
    verdicts.find(({ effect }) => effect === 'deny') ??
    verdicts.find(({ effect }) => effect === 'allow') ?? {
      effect: 'none',
      reason: 'no policy of the identity allows it',
    }
  )
}

/** The verdict of the policy that allows least. */
function eachOf(policies: readonly Policy[], question: Question): Verdict {
  const verdicts = policies.map((policy) => evaluatePolicy(policy, question))
  return (
    verdicts.find(({ effect }) => effect === 'deny') ??
    verdicts.find(({ effect }) => effect === 'none') ??
    verdicts[0] ?? { effect: 'allow', reason: 'no session policy' }
  )
}

/** Plugins act, and spend, with the account of the bucket's owner. */
function isOfBucketOwner(action: string): boolean {
  return OF_BUCKET.includes(action) || !action.startsWith('s3:')
}

function explicit(document: string, { reason }: Verdict): Decision {
  return { outcome: 'explicit deny', reason: `${document}: ${reason}` }
}

function implicit(reason: string): Decision {
  return { outcome: 'implicit deny', reason }
}
