import { S3Error } from '../../common/errors/s3-error.js'
import type { Acl, Grant, Group, Permission } from '../api/access.js'
import type { Question, Verdict } from './question.js'
import { readCannedName } from './values/acl-values.js'

interface AclEvaluation {
  /** IgnorePublicAcls: grants to AllUsers and AuthenticatedUsers have no effect. */
  readonly ignorePublic?: boolean
}

/**
 * Returns the grants of a canned ACL:
 * https://docs.aws.amazon.com/AmazonS3/latest/userguide/acl-overview.html#canned-acl
 * @param owner canonical id of the owner of the new bucket or object
 * @param bucketOwner canonical id of the owner of the bucket that the object is in
 * @throws S3Error InvalidArgument for an unknown name, NotImplemented for aws-exec-read, which names a service of AWS
 */
export function cannedAcl(
  name: string,
  { owner, bucketOwner }: { readonly owner: string; readonly bucketOwner: string },
  kind: 'bucket' | 'object',
): Acl {
  const own: Grant = { grantee: { id: owner }, permission: 'FULL_CONTROL' }
  const to = (group: Group, ...permissions: readonly Permission[]): Acl => ({
    owner,
    grants: [own, ...permissions.map((permission): Grant => ({ grantee: { group }, permission }))],
  })
  const toBucketOwner = (permission: Permission): Acl => ({
    owner,
    // S3 ignores these two on a bucket.
    grants: kind === 'bucket' || bucketOwner === owner ? [own] : [own, { grantee: { id: bucketOwner }, permission }],
  })
  switch (readCannedName(name)) {
    case 'private':
      return { owner, grants: [own] }
    case 'public-read':
      return to('AllUsers', 'READ')
    case 'public-read-write':
      return to('AllUsers', 'READ', 'WRITE')
    case 'authenticated-read':
      return to('AuthenticatedUsers', 'READ')
    case 'bucket-owner-read':
      return toBucketOwner('READ')
    case 'bucket-owner-full-control':
      return toBucketOwner('FULL_CONTROL')
    case 'log-delivery-write':
      // S3 gives this name a meaning on buckets only.
      return kind === 'bucket' ? to('LogDelivery', 'WRITE', 'READ_ACP') : { owner, grants: [own] }
    case 'aws-exec-read':
      throw new S3Error('NotImplemented', {
        message: 'The canned ACL aws-exec-read is for Amazon EC2, which is not here.',
        fields: { ArgumentName: 'x-amz-acl', ArgumentValue: name },
      })
  }
}

/** True if the ACL grants anything to AllUsers or AuthenticatedUsers, which is what AWS calls public. */
export function isPublicAcl(acl: Acl): boolean {
  return acl.grants.some(({ grantee }) => 'group' in grantee && grantee.group !== 'LogDelivery')
}

/**
 * The permission that gives an action, and the ACL that it is looked up in:
 * https://docs.aws.amazon.com/AmazonS3/latest/userguide/acl-overview.html#acl-access-policy-permission-mapping
 */
const PERMISSIONS: ReadonlyMap<string, readonly ['bucket' | 'object', Permission]> = new Map([
  ['s3:listbucket', ['bucket', 'READ']],
  ['s3:listbucketversions', ['bucket', 'READ']],
  ['s3:listbucketmultipartuploads', ['bucket', 'READ']],
  ['s3:putobject', ['bucket', 'WRITE']],
  ['s3:getbucketacl', ['bucket', 'READ_ACP']],
  ['s3:putbucketacl', ['bucket', 'WRITE_ACP']],
  ['s3:getobject', ['object', 'READ']],
  ['s3:getobjectversion', ['object', 'READ']],
  ['s3:getobjectacl', ['object', 'READ_ACP']],
  ['s3:getobjectversionacl', ['object', 'READ_ACP']],
  ['s3:putobjectacl', ['object', 'WRITE_ACP']],
  ['s3:putobjectversionacl', ['object', 'WRITE_ACP']],
] as const)

/** Returns what the ACLs of the bucket and of the object give the principal; an ACL never denies. */
export function evaluateAcl(
  bucketAcl: Acl | undefined,
  objectAcl: Acl | undefined,
  { principal, action }: Question,
  { ignorePublic = false }: AclEvaluation = {},
): Verdict {
  // WRITE also lets the owners of existing objects delete them.
  const deletesOwn =
    action.toLowerCase() === 's3:deleteobject' && principal.kind === 'account' && principal.account === objectAcl?.owner
  const needed = PERMISSIONS.get(deletesOwn ? 's3:putobject' : action.toLowerCase())
  if (!needed) return { effect: 'none', reason: `no ACL grants ${action}` }
  const [kind, permission] = needed
  const acl = kind === 'bucket' ? bucketAcl : objectAcl
  const found = (acl?.grants ?? []).filter(
    (grant) => grant.permission === permission || grant.permission === 'FULL_CONTROL',
  )
  let verdict: Verdict = { effect: 'none', reason: `the ACL of the ${kind} does not grant ${permission}` }
  for (const { grantee } of found) {
    if ('id' in grantee) {
      if (principal.kind === 'account' && grantee.id === principal.account && verdict.effect === 'none')
        verdict = { effect: 'allow', to: 'account', reason: `the ACL of the ${kind} grants the account ${permission}` }
      continue
    }
    if (grantee.group === 'LogDelivery') {
      if (principal.kind === 'service')
        verdict = { effect: 'allow', to: 'identity', reason: `the ACL of the ${kind} grants LogDelivery ${permission}` }
      continue
    }
    if (ignorePublic) continue
    if (grantee.group === 'AllUsers')
      return { effect: 'allow', to: 'everyone', reason: `the ACL of the ${kind} grants AllUsers ${permission}` }
    if (grantee.group === 'AuthenticatedUsers' && principal.kind === 'account')
      verdict = {
        effect: 'allow',
        to: 'everyone',
        reason: `the ACL of the ${kind} grants AuthenticatedUsers ${permission}`,
      }
  }
  return verdict
}
