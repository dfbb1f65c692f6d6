import type { IncomingHttpHeaders } from 'node:http'
import { S3Error } from '../../../common/errors/s3-error.js'
import { childText, parseXml, type XmlNode } from '../../../common/xml.js'
import { type CannedName, readCannedName } from '../../access/values/acl-values.js'
import { headerText } from '../../access/values/header-values.js'
import type { Context } from '../../api/context.js'
import type { PolicyEntry } from '../../api/gateway.js'
import type { S3Request } from '../../api/request.js'
import { allows } from '../../gateway/account/policies.js'
import { ownerId } from '../bucket/owner.js'
import { requireGrantChildren, requirePolicyChildren } from './acl-children.js'
import { type PublicAccess, refusePublicAcl } from './public-access-block.js'

/** Header that write operations support. */
const ACL = 'x-amz-acl'

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
const canned: Readonly<Partial<Record<CannedName, PublicGrants>>> = {
  private: NOBODY,
  'public-read': { READ: true, WRITE: false },
  'public-read-write': { READ: true, WRITE: true },
  // The owner of a bucket owns its objects.
  'bucket-owner-read': NOBODY,
  'bucket-owner-full-control': NOBODY,
}

/** On a bucket, READ is listing, and WRITE is storing and deleting objects. */
export function bucketGrants({ entries, hidden }: PublicAccess): PublicGrants {
  const listsHidden = hidden.some(({ prefix, action }) => action === 'list' && prefix === '')
  return { READ: listsHidden || allows(entries, 'list', ''), WRITE: allows(entries, 'put', '') }
}

export function objectGrants({ entries, hidden }: PublicAccess, key: string): PublicGrants {
  const readsHidden = hidden.some(({ action }) => action === 'get')
  return { ...grantsByRules(entries, key), ...(readsHidden && { READ: true }) }
}

/** The grants of an object by the rules that the gateway lists alone. */
function grantsByRules(entries: readonly PolicyEntry[], key: string): PublicGrants {
  return { READ: allows(entries, 'get', key), WRITE: allows(entries, 'put', key) }
}

/** Reads x-amz-acl; undefined if absent. Throws InvalidArgument, AccessControlListNotSupported. */
function cannedAcl(headers: IncomingHttpHeaders): PublicGrants | undefined {
  const text = headerText(headers, ACL)
  if (text === undefined) return undefined
  const name = readCannedName(text)
  const grants = canned[name]
  if (grants) return grants
  throw new S3Error('AccessControlListNotSupported', {
    message: `The canned ACL ${name} is for groups that the gateway does not have. The gateway has only rules for everybody, set with PutBucketPolicy.`,
  })
}

/** Returns true if both are equal. */
function sameGrants(one: PublicGrants, other: PublicGrants): boolean {
  return one.READ === other.READ && one.WRITE === other.WRITE
}

/** Throws AccessControlListNotSupported if an ACL grants more than the policy already grants everybody. */
function requireGranted(asked: PublicGrants, current: PublicGrants): void {
  if ((asked.READ && !current.READ) || (asked.WRITE && !current.WRITE)) {
    throw new S3Error('AccessControlListNotSupported', {
      message:
        "ACLs cannot grant rights here: the gateway's rules apply to all keys with a prefix, and allow everybody to list a bucket only together with reading its objects. Use PutBucketPolicy; an ACL that matches the policy is accepted.",
    })
  }
}

/** Throws AccessControlListNotSupported unless an ACL grants exactly what the policy grants everybody. */
function requireTrue(asked: PublicGrants, current: PublicGrants): void {
  requireGranted(asked, current)
  if (sameGrants(asked, current)) return
  throw new S3Error('AccessControlListNotSupported', {
    message:
      'ACLs cannot revoke rights here: the bucket policy grants everybody more than this ACL. Change it with PutBucketPolicy or DeleteBucketPolicy.',
  })
}

const ALL_USERS = 'http://acs.amazonaws.com/groups/global/AllUsers'

/**
 * Reads the rights that an AccessControlPolicy grants everybody.
 * @throws S3Error MalformedACLError; AccessControlListNotSupported for grantees other than the owner and everybody, and
 * for an owner with less than all rights
 */
async function readAclDocument(bytes: Buffer, context: Context): Promise<PublicGrants> {
  const root = await parseXml(bytes, 'AccessControlPolicy')
  requirePolicyChildren(root)
  const owner = root.children.get('Owner')?.[0]
  const list = root.children.get('AccessControlList')?.[0]
  if (!owner || !list) throw new S3Error('MalformedACLError')
  if (childText(owner, 'ID') !== ownerId(context)) {
    throw notSupported('The owner cannot be changed: Owner must have the ID that GetBucketAcl and GetObjectAcl return.')
  }
  const grants = (list.children.get('Grant') ?? []).map((grant) => readGrant(grant, context))
  if (!grants.includes('FULL_CONTROL')) throw notSupported('The owner always has FULL_CONTROL: the ACL must say so.')
  return { READ: grants.includes('READ'), WRITE: grants.includes('WRITE') }
}

/** Returns the right that a grant gives everybody, or the owner's FULL_CONTROL. */
function readGrant(grant: XmlNode, context: Context): 'READ' | 'WRITE' | 'FULL_CONTROL' {
  requireGrantChildren(grant)
  const grantee = grant.children.get('Grantee')?.[0]
  const permission = childText(grant, 'Permission')
  if (!grantee || permission === undefined) throw new S3Error('MalformedACLError')
  if (childText(grantee, 'ID') === ownerId(context)) {
    if (permission === 'FULL_CONTROL') return permission
    throw notSupported('The owner always has FULL_CONTROL, and nothing else can be granted to it.')
  }
  if (childText(grantee, 'URI') !== ALL_USERS)
    throw notSupported('Rights can be granted to the owner and to everybody only.')
  if (permission === 'READ' || permission === 'WRITE') return permission
  throw notSupported(`Everybody cannot be granted ${permission.slice(0, 40)}.`)
}

function notSupported(message: string): S3Error {
  return new S3Error('AccessControlListNotSupported', { message })
}

/** Reads the ACL of PutBucketAcl or PutObjectAcl from the header or the body. */
export async function readAcl(request: S3Request, context: Context): Promise<PublicGrants> {
  const inHeader = cannedAcl(request.headers)
  const { bytes } = await request.body.collect(context.limits.maxDocumentBytes)
  if (inHeader && bytes.length > 0) {
    throw new S3Error('InvalidRequest', { message: 'An ACL is given in x-amz-acl or in the body, not in both.' })
  }
  if (inHeader) return inHeader
  if (bytes.length > 0) return readAclDocument(bytes, context)
  throw new S3Error('MissingSecurityHeader', {
    message: 'An ACL is needed: in x-amz-acl, or in the body.',
    fields: { MissingHeaderName: 'x-amz-acl' },
  })
}

/** Accepts only an ACL that matches the present rights, so there is nothing to store. */
export async function applyAcl(
  context: Context,
  bucket: string,
  asked: PublicGrants,
  current: PublicGrants,
): Promise<void> {
  await refuseBlocked(context, bucket, asked)
  requireTrue(asked, current)
}

/**
 * Checks x-amz-acl of a write. `private` grants nothing, which is always true. The bucket policy must already grant
 * anything more.
 * @throws S3Error AccessControlListNotSupported, InvalidArgument, AccessDenied
 */
export async function requireAclTrue(
  request: Pick<S3Request<'object'>, 'headers' | 'bucket' | 'key'>,
  context: Context,
): Promise<void> {
  const asked = cannedAcl(request.headers)
  if (!asked?.READ && !asked?.WRITE) return
  await refuseBlocked(context, request.bucket, asked)
  requireGranted(asked, grantsByRules(await context.gateway.listPolicies(request.bucket), request.key))
}

/**
 * https://docs.aws.amazon.com/AmazonS3/latest/userguide/access-control-block-public-access.html#access-control-block-public-access-options
 */
async function refuseBlocked(context: Context, bucket: string, asked: PublicGrants): Promise<void> {
  if (asked.READ || asked.WRITE) await refusePublicAcl(context, bucket)
}
