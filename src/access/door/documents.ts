import type { PolicyEntry } from '../../gateway/gateway.js'
import type { BucketSettings } from '../../state/records/bucket-settings.js'
import type { Acl } from '../decision/acl.js'
import type { Ownership } from '../decision/decide.js'
import { type Policy, parsePolicy } from '../decision/policy.js'

/** The account that owned the bucket when a document was stored; the server had just asked the gateway. */
export interface Owned {
  /** Canonical id. */
  readonly owner: string
  /** Access key id of a key pair of that account: by it the server finds the account again. '' for the server's own. */
  readonly by: string
}

/** A bucket policy. */
export interface PolicyRecord extends Partial<Owned> {
  /** As it was put. */
  readonly document: string
  /** The rules that were set on the gateway, because they say exactly the same; empty where none do. */
  readonly entries: readonly PolicyEntry[]
}

export interface AclRecord extends Owned {
  readonly acl: Acl
}

export interface OwnershipRecord extends Owned {
  readonly ownership: Ownership
}

declare module '../../state/records/setting-types.js' {
  interface SettingTypes {
    policy: PolicyRecord
    acl: AclRecord
    objectOwnership: OwnershipRecord
  }
}

/** The documents of one bucket. */
export interface BucketDocuments extends Owned {
  /** The text and what it says; absent without a policy. */
  readonly policy?: {
    readonly text: string
    readonly parsed: Policy
    /** The gateway has rules that say the same, and decides by them: another program may have changed them since. */
    readonly delegated: boolean
  }
  readonly acl?: Acl
  readonly ownership: Ownership
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
): Promise<BucketDocuments | undefined> {
  const policy = await settings.get(bucket, 'policy')
  const acl = await settings.get(bucket, 'acl')
  const ownership = await settings.get(bucket, 'objectOwnership')
  const owned = policy?.owner !== undefined ? (policy as PolicyRecord & Owned) : (acl ?? ownership)
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
