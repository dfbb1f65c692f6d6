import type { IncomingHttpHeaders } from 'node:http'
import { S3Error } from '../../../common/errors/s3-error.js'
import { childText, document, element, parseXml, type XmlNode } from '../../../common/xml.js'
import { cannedAcl } from '../../access/acl.js'
import { byEmail, GRANTS, groupOf, isCanonicalId, readGrantees, uriOf } from '../../access/values/acl-values.js'
import { headerText } from '../../access/values/header-values.js'
import type { Acl, Grant, Permission } from '../../api/access.js'
import type { Context } from '../../api/context.js'
import { requireGrantChildren, requirePolicyChildren } from './acl-children.js'
import type { PublicGrants } from './gateway-acl.js'

/** Headers with an ACL, which operations that support ACLs declare. */
export const ACL_HEADERS: readonly string[] = ['x-amz-acl', ...Object.keys(GRANTS)]

/** ACL headers of requests that store an object: there is no right to write an object. */
export const OBJECT_ACL_HEADERS = ACL_HEADERS.filter((name) => name !== 'x-amz-grant-write')

export interface AclOwners {
  /** Canonical id of the owner of the bucket or object. */
  readonly owner: string
  /** Canonical id of the owner of the bucket. */
  readonly bucketOwner: string
}

/**
 * Reads the ACL in the headers of a request; undefined if there is none.
 * @throws S3Error InvalidArgument, InvalidRequest, NotImplemented
 */
export function aclOfHeaders(
  headers: IncomingHttpHeaders,
  owners: AclOwners,
  kind: 'bucket' | 'object',
): Acl | undefined {
  const canned = headerText(headers, 'x-amz-acl')
  const given = Object.keys(GRANTS).filter((name) => headers[name] !== undefined)
  if (canned !== undefined && given.length > 0) {
    throw new S3Error('InvalidRequest', { message: 'Specifying both Canned ACLs and Header Grants is not allowed' })
  }
  if (canned !== undefined) return cannedAcl(canned, owners, kind)
  if (given.length === 0) return undefined
  const grants = given.flatMap((name) => readGrantees(name, headerText(headers, name) ?? ''))
  return { owner: owners.owner, grants }
}

const PERMISSIONS: readonly Permission[] = ['READ', 'WRITE', 'READ_ACP', 'WRITE_ACP', 'FULL_CONTROL']

/** https://docs.aws.amazon.com/AmazonS3/latest/userguide/acl-overview.html: "An ACL can have up to 100 grants." */
const MAX_GRANTS = 100
const XSI = 'xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance"'

/** Writes an AccessControlPolicy. */
export function aclXml({ owner, grants }: Acl, { caller, server }: Pick<Context, 'caller' | 'server'>): string {
  // Names of accounts are not for everyone: they are access keys of the gateway.
  const nameOf = (id: string) => caller && server.accountName(id)
  // Groups come first, as in the lists that https://github.com/ceph/s3-tests compares.
  const ordered = [...grants].sort((a, b) => Number('id' in a.grantee) - Number('id' in b.grantee))
  const list = ordered.map((grant) => grantElement(grant, nameOf))
  return document(
    'AccessControlPolicy',
    `<Owner>${element('ID', owner)}${element('DisplayName', nameOf(owner))}</Owner><AccessControlList>${list.join('')}</AccessControlList>`,
  )
}

/** @param nameOf display name of an account */
export function grantElement(
  { grantee, permission }: Grant,
  nameOf: (canonicalId: string) => string | undefined,
): string {
  const [type, name] =
    'id' in grantee
      ? ['CanonicalUser', element('ID', grantee.id) + element('DisplayName', nameOf(grantee.id))]
      : ['Group', element('URI', uriOf(grantee.group))]
  return `<Grant><Grantee ${XSI} xsi:type="${type}">${name}</Grantee>${element('Permission', permission)}</Grant>`
}

/**
 * Reads an AccessControlPolicy.
 * @param owner canonical id, which an ACL cannot change
 * @throws S3Error MalformedACLError, AccessDenied for another owner, InvalidArgument, NotImplemented
 */
export async function readAclXml(bytes: Buffer, owner: string): Promise<Acl> {
  const root = await parseXml(bytes, 'AccessControlPolicy')
  requirePolicyChildren(root)
  const stated = root.children.get('Owner')?.[0]
  const list = root.children.get('AccessControlList')?.[0]
  if (!list) throw new S3Error('MalformedACLError')
  const id = stated && childText(stated, 'ID')
  if (id !== undefined && id !== owner)
    throw new S3Error('AccessDenied', {
      message: 'An ACL cannot change the owner: Owner must have the ID that GetBucketAcl and GetObjectAcl return.',
    })
  const nodes = list.children.get('Grant') ?? []
  if (nodes.length > MAX_GRANTS)
    throw new S3Error('MalformedACLError', { message: `An ACL has at most ${MAX_GRANTS} grants.` })
  return { owner, grants: nodes.map(readGrant) }
}

/** Reads a `<Grant>`. Throws MalformedACLError, InvalidArgument, MethodNotAllowed. */
export function readGrant(node: XmlNode): Grant {
  requireGrantChildren(node)
  const grantee = node.children.get('Grantee')?.[0]
  const permission = PERMISSIONS.find((one) => one === childText(node, 'Permission'))
  if (!grantee || !permission) throw new S3Error('MalformedACLError')
  const id = childText(grantee, 'ID')
  const uri = childText(grantee, 'URI')
  if (id !== undefined && uri !== undefined) throw new S3Error('MalformedACLError')
  if (id !== undefined) {
    if (isCanonicalId(id)) return { grantee: { id }, permission }
    throw new S3Error('InvalidArgument', {
      message: 'Invalid id',
      fields: { ArgumentName: 'CanonicalUser/ID', ArgumentValue: id.slice(0, 100) },
    })
  }
  if (uri !== undefined) {
    const group = groupOf(uri)
    if (group) return { grantee: { group }, permission }
    throw new S3Error('InvalidArgument', {
      message: 'Invalid group uri',
      fields: { ArgumentName: 'Group/URI', ArgumentValue: uri.slice(0, 200) },
    })
  }
  if (childText(grantee, 'EmailAddress') !== undefined) throw byEmail()
  throw new S3Error('MalformedACLError')
}

/** The ACL of what belongs to its owner alone. */
export function privateAcl(owner: string): Acl {
  return { owner, grants: [{ grantee: { id: owner }, permission: 'FULL_CONTROL' }] }
}

/** Adds what the gateway itself grants everybody. */
export function withPublic(acl: Acl, granted: PublicGrants): Acl {
  const has = (permission: Permission) =>
    acl.grants.some(
      ({ grantee, permission: given }) =>
        'group' in grantee && grantee.group === 'AllUsers' && (given === permission || given === 'FULL_CONTROL'),
    )
  const more = (['READ', 'WRITE'] as const).filter((permission) => granted[permission] && !has(permission))
  return {
    ...acl,
    grants: [...acl.grants, ...more.map((permission) => ({ grantee: { group: 'AllUsers' as const }, permission }))],
  }
}
