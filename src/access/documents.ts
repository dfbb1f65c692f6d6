import { S3Error } from '../../common/errors/s3-error.js'
import type { Acl, BucketDocuments, BucketOwner, Ownership } from '../api/access.js'
import type { PolicyEntry } from '../api/gateway.js'
import type { Identity, Session } from '../api/identity.js'
import type { BucketSettings } from '../api/settings.js'
import { type Policy, parsePolicy } from './policy.js'

/** A bucket policy. */
interface PolicyRecord extends Partial<BucketOwner> {
  /** The text of the document, unchanged. */
  readonly document: string
  /** The rules that were set on the gateway, because they say exactly the same; empty where none do. */
  readonly entries: readonly PolicyEntry[]
}

interface AclRecord extends BucketOwner {
  readonly acl: Acl
}

interface OwnershipRecord extends BucketOwner {
  readonly ownership: Ownership
  /** The controls were deleted: S3 then shows none, and objects belong to their writers. */
  readonly removed?: true
}

declare module '../api/settings.js' {
  interface SettingTypes {
    policy: PolicyRecord
    acl: AclRecord
    objectOwnership: OwnershipRecord
  }
}

export interface ParsedDocuments extends BucketDocuments {
  readonly policy?: BucketDocuments['policy'] & { readonly parsed: Policy }
}

/** Policies that have been parsed, by their records. */
const parsed = new WeakMap<PolicyRecord, Policy>()

/**
 * Reads the documents of a bucket from the cached settings; undefined if it has none, so that the gateway alone
 * decides. A document of an earlier release, which does not state the owner, counts as none: the gateway has its rules.
 * @throws S3Error for a document that this release cannot read, and ServiceUnavailable: nothing is allowed then
 */
export async function readDocuments(
  settings: Pick<BucketSettings, 'get'>,
  bucket: string,
): Promise<ParsedDocuments | undefined> {
  const policy = await settings.get(bucket, 'policy')
  const acl = await settings.get(bucket, 'acl')
  const ownership = await settings.get(bucket, 'objectOwnership')
  const owned = policy?.owner !== undefined ? (policy as PolicyRecord & BucketOwner) : (acl ?? ownership)
  if (!owned) return undefined
  const { owner, by } = owned
  // Documents of another owner are left from an earlier bucket of this name.
  return {
    owner,
    by,
    ...(policy?.owner === owner && {
      policy: { text: policy.document, parsed: policyOf(policy, bucket), delegated: policy.entries.length > 0 },
    }),
    ...(acl?.owner === owner && { acl: acl.acl }),
    ownership: ownership?.owner === owner ? ownership.ownership : 'BucketOwnerEnforced',
  }
}

function policyOf(record: PolicyRecord, bucket: string): Policy {
  const known = parsed.get(record)
  if (known) return known
  const policy = parsePolicy(record.document, { kind: 'bucket', bucket })
  parsed.set(record, policy)
  return policy
}

const parsedPolicies = new WeakMap<Identity, readonly Policy[]>()
const parsedSessions = new WeakMap<Session, readonly Policy[]>()
const NO_POLICIES: readonly Policy[] = Object.freeze([])

/** Returns the policies of an identity; undefined if it has none. Throws AccessDenied if one cannot be read. */
export function policiesOf(identity: Identity): readonly Policy[] | undefined {
  if (!identity.policies) return undefined
  const known = parsedPolicies.get(identity)
  if (known) return known
  try {
    const policies = identity.policies.map((document) => parse(document))
    parsedPolicies.set(identity, policies)
    return policies
  } catch (cause) {
    throw new S3Error('AccessDenied', { cause })
  }
}

/**
 * Returns the policies that limit the session of an identity; none if it has none. Throws AccessDenied if one cannot be
 * read.
 */
export function sessionPoliciesOf({ session }: Identity): readonly Policy[] {
  if (!session?.policy) return NO_POLICIES
  const known = parsedSessions.get(session)
  if (known) return known
  try {
    const policies = [session.policy, ...(session.narrowed ?? [])].map((document) => parse(document))
    parsedSessions.set(session, policies)
    return policies
  } catch (cause) {
    throw new S3Error('AccessDenied', { cause })
  }
}

/** True if documents of the identity itself, or of its session, decide what it may do. */
export function hasPolicies({ policies, session }: Identity): boolean {
  return policies !== undefined || session?.policy !== undefined
}

/**
 * Returns what is wrong with a policy of an identity; undefined if nothing is.
 * @param pluginActions see PolicyOptions; absent where the plugins of the server are not known
 */
export function identityPolicyProblem(document: unknown, pluginActions?: readonly string[]): string | undefined {
  try {
    parse(document, pluginActions)
    return undefined
  } catch (error) {
    if (error instanceof S3Error) return error.message
    throw error
  }
}

function parse(document: unknown, pluginActions?: readonly string[]): Policy {
  return parsePolicy(JSON.stringify(document), { kind: 'identity', ...(pluginActions && { pluginActions }) })
}
