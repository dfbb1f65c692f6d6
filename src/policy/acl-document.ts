import type { Context } from '../context.js'
import { S3Error } from '../errors/s3-error.js'
import { ownerElement, ownerId, ownerNames } from '../operations/common/owner.js'
import { childText, document, element, parseXml, type XmlNode } from '../xml.js'
import type { PublicGrants } from './acl.js'

const ALL_USERS = 'http://acs.amazonaws.com/groups/global/AllUsers'
const PERMISSIONS = ['READ', 'WRITE'] as const
const XSI = 'xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance"'

/** The AccessControlPolicy of what belongs to the caller and is open to everybody as far as `grants` say. */
export function aclDocument(context: Context, grants: PublicGrants): string {
  const everybody = PERMISSIONS.filter((permission) => grants[permission]).map((permission) =>
    grantElement('Group', element('URI', ALL_USERS), permission),
  )
  const list = [grantElement('CanonicalUser', ownerNames(context), 'FULL_CONTROL'), ...everybody].join('')
  return document('AccessControlPolicy', `${ownerElement(context)}<AccessControlList>${list}</AccessControlList>`)
}

function grantElement(type: string, grantee: string, permission: string): string {
  return `<Grant><Grantee ${XSI} xsi:type="${type}">${grantee}</Grantee>${element('Permission', permission)}</Grant>`
}

/**
 * What an AccessControlPolicy lets everybody do.
 * @throws S3Error MalformedACLError; AccessControlListNotSupported for grantees other than the owner and everybody, and for an owner with less than all rights
 */
export async function readAclDocument(bytes: Buffer, context: Context): Promise<PublicGrants> {
  const root = await parseXml(bytes, 'AccessControlPolicy')
  const owner = root.children.get('Owner')?.[0]
  const list = root.children.get('AccessControlList')?.[0]
  if (!owner || !list) throw new S3Error('MalformedACLError')
  if (childText(owner, 'ID') !== ownerId(context)) {
    throw notSupported('The owner cannot be changed: Owner must have the ID that GetBucketAcl and GetObjectAcl tell.')
  }
  const grants = (list.children.get('Grant') ?? []).map((grant) => readGrant(grant, context))
  if (!grants.includes('FULL_CONTROL')) throw notSupported('The owner always has FULL_CONTROL: the ACL must say so.')
  return { READ: grants.includes('READ'), WRITE: grants.includes('WRITE') }
}

/** What everybody is granted, or the owner's FULL_CONTROL. */
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
