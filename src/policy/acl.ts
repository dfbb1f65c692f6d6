import type { IncomingHttpHeaders } from 'node:http'
import { S3Error } from '../errors/s3-error.js'
import type { PolicyEntry } from '../gateway/gateway.js'
import { allows } from '../gateway/policies.js'

/** Honoured by operations that write. */
export const ACL = 'x-amz-acl'

/** What an ACL lets everybody do. */
export interface PublicGrants {
  readonly READ: boolean
  readonly WRITE: boolean
}

const NOBODY: PublicGrants = { READ: false, WRITE: false }

/** The canned ACLs that can be true here: https://docs.aws.amazon.com/AmazonS3/latest/userguide/acl-overview.html#canned-acl */
const canned: Readonly<Record<string, PublicGrants>> = {
  private: NOBODY,
  'public-read': { READ: true, WRITE: false },
  'public-read-write': { READ: true, WRITE: true },
  // The owner of a bucket owns its objects.
  'bucket-owner-read': NOBODY,
  'bucket-owner-full-control': NOBODY,
}
const neverTrue = ['authenticated-read', 'aws-exec-read', 'log-delivery-write']

/** On a bucket READ is listing and WRITE is putting and deleting objects. */
export function bucketGrants(entries: readonly PolicyEntry[]): PublicGrants {
  return { READ: allows(entries, 'list', ''), WRITE: allows(entries, 'put', '') }
}

export function objectGrants(entries: readonly PolicyEntry[], key: string): PublicGrants {
  return { READ: allows(entries, 'get', key), WRITE: allows(entries, 'put', key) }
}

/** What x-amz-acl asks for; undefined when it is not there. Throws InvalidArgument and AccessControlListNotSupported. */
export function cannedAcl(headers: IncomingHttpHeaders): PublicGrants | undefined {
  const name = headers[ACL]?.toString()
  if (name === undefined) return undefined
  const grants = Object.hasOwn(canned, name) ? canned[name] : undefined
  if (grants) return grants
  if (neverTrue.includes(name)) {
    throw new S3Error('AccessControlListNotSupported', {
      message: `The canned ACL ${name} is for groups that the gateway does not know. It has rules for everybody, set with PutBucketPolicy.`,
    })
  }
  throw new S3Error('InvalidArgument', { fields: { ArgumentName: 'x-amz-acl', ArgumentValue: name.slice(0, 100) } })
}

/** True when both are the same. */
export function sameGrants(one: PublicGrants, other: PublicGrants): boolean {
  return one.READ === other.READ && one.WRITE === other.WRITE
}

/** Throws AccessControlListNotSupported where an ACL asks for more than everybody may do already. */
export function requireGranted(asked: PublicGrants, current: PublicGrants): void {
  if ((asked.READ && !current.READ) || (asked.WRITE && !current.WRITE)) {
    throw new S3Error('AccessControlListNotSupported', {
      message:
        "ACLs cannot open anything here: the gateway's rules are for all keys that begin alike, and let everybody list a bucket only together with reading its objects. Use PutBucketPolicy; an ACL that says what the policy grants is accepted.",
    })
  }
}

/** Throws AccessControlListNotSupported unless an ACL says just what everybody may do. */
export function requireTrue(asked: PublicGrants, current: PublicGrants): void {
  requireGranted(asked, current)
  if (sameGrants(asked, current)) return
  throw new S3Error('AccessControlListNotSupported', {
    message:
      'ACLs cannot close anything here: the bucket policy lets everybody do more than this ACL says. Change it with PutBucketPolicy or DeleteBucketPolicy.',
  })
}
