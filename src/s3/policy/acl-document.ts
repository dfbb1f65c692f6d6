import { S3Error } from '../../common/errors/s3-error.js'
import { childText, parseXml, type XmlNode } from '../../common/xml/xml.js'
import type { Context } from '../../server/context.js'
import { ownerId } from '../vocabulary/owner.js'
import type { PublicGrants } from './acl.js'

const ALL_USERS = 'http://acs.amazonaws.com/groups/global/AllUsers'

/**
 * Reads the rights that an AccessControlPolicy grants everybody.
 * @throws S3Error MalformedACLError; AccessControlListNotSupported for grantees other than the owner and everybody, and
 * for an owner with less than all rights
 */
export async function readAclDocument(bytes: Buffer, context: Context): Promise<PublicGrants> {
  const root = await parseXml(bytes, 'AccessControlPolicy')
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
