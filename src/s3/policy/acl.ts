import type { IncomingHttpHeaders } from 'node:http'
import { S3Error } from '../../common/errors/s3-error.js'
import { allows } from '../../gateway/account/policies.js'
import type { PolicyEntry } from '../../gateway/gateway.js'
import type { PublicAccess } from './public-access.js'

/** Header that write operations support. */
export const ACL = 'x-amz-acl'

/** The rights that an ACL grants everybody. */
export interface PublicGrants {
  readonly READ: boolean
  readonly WRITE: boolean
}

const NOBODY: PublicGrants = { READ: false, WRITE: false }

/**
 * The canned ACLs that the gateway's rules can represent:
 * https://docs.aws.amazon.com/AmazonS3/latest/userguide/acl-overview.html#canned-acl
 */
const canned: Readonly<Record<string, PublicGrants>> = {
  private: NOBODY,
  'public-read': { READ: true, WRITE: false },
  'public-read-write': { READ: true, WRITE: true },
  // The owner of a bucket owns its objects.
  'bucket-owner-read': NOBODY,
  'bucket-owner-full-control': NOBODY,
}
const neverTrue = ['authenticated-read', 'aws-exec-read', 'log-delivery-write']

/** On a bucket, READ is listing, and WRITE is storing and deleting objects. */
export function bucketGrants({ entries, hidden }: PublicAccess): PublicGrants {
  const listsHidden = hidden.some(({ prefix, action }) => action === 'list' && prefix === '')
  return { READ: listsHidden || allows(entries, 'list', ''), WRITE: allows(entries, 'put', '') }
}

export function objectGrants({ entries, hidden }: PublicAccess, key: string): PublicGrants {
  const readsHidden = hidden.some(({ action }) => action === 'get')
  return { ...grantsByRules(entries, key), ...(readsHidden && { READ: true }) }
}

/** The same, based only on the rules that the gateway lists. */
export function grantsByRules(entries: readonly PolicyEntry[], key: string): PublicGrants {
  return { READ: allows(entries, 'get', key), WRITE: allows(entries, 'put', key) }
}

/** Reads x-amz-acl; undefined if absent. Throws InvalidArgument, AccessControlListNotSupported. */
export function cannedAcl(headers: IncomingHttpHeaders): PublicGrants | undefined {
  const name = headers[ACL]?.toString()
  if (name === undefined) return undefined
  const grants = Object.hasOwn(canned, name) ? canned[name] : undefined
  if (grants) return grants
  if (neverTrue.includes(name)) {
    throw new S3Error('AccessControlListNotSupported', {
      message: `The canned ACL ${name} is for groups that the gateway does not have. The gateway has only rules for everybody, set with PutBucketPolicy.`,
    })
  }
  throw new S3Error('InvalidArgument', { fields: { ArgumentName: 'x-amz-acl', ArgumentValue: name.slice(0, 100) } })
}

/** Returns true if both are equal. */
export function sameGrants(one: PublicGrants, other: PublicGrants): boolean {
  return one.READ === other.READ && one.WRITE === other.WRITE
}

/** Throws AccessControlListNotSupported if an ACL grants more than the policy already grants everybody. */
export function requireGranted(asked: PublicGrants, current: PublicGrants): void {
  if ((asked.READ && !current.READ) || (asked.WRITE && !current.WRITE)) {
    throw new S3Error('AccessControlListNotSupported', {
      message:
        "ACLs cannot grant rights here: the gateway's rules apply to all keys with a prefix, and allow everybody to list a bucket only together with reading its objects. Use PutBucketPolicy; an ACL that matches the policy is accepted.",
    })
  }
}

/** Throws AccessControlListNotSupported unless an ACL grants exactly what the policy grants everybody. */
export function requireTrue(asked: PublicGrants, current: PublicGrants): void {
  requireGranted(asked, current)
  if (sameGrants(asked, current)) return
  throw new S3Error('AccessControlListNotSupported', {
    message:
      'ACLs cannot revoke rights here: the bucket policy grants everybody more than this ACL. Change it with PutBucketPolicy or DeleteBucketPolicy.',
  })
}
