import type { Acl, Grant, Permission } from '../../access/decision/acl.js'
import { S3Error } from '../../common/errors/s3-error.js'
import { childText, document, element, parseXml, type XmlNode } from '../../common/xml/xml.js'
import type { Context } from '../../server/context.js'
import { groupOf, isCanonicalId, uriOf } from './grantees.js'

const PERMISSIONS: readonly Permission[] = ['READ', 'WRITE', 'READ_ACP', 'WRITE_ACP', 'FULL_CONTROL']
/** https://docs.aws.amazon.com/AmazonS3/latest/userguide/acl-overview.html: "An ACL can have up to 100 grants." */
const MAX_GRANTS = 100
const XSI = 'xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance"'

/** Writes an AccessControlPolicy. */
export function aclXml({ owner, grants }: Acl, { caller, server }: Pick<Context, 'caller' | 'server'>): string {
  // Names of accounts are not for everyone: they are access keys of the gateway.
  const person = (id: string) => element('ID', id) + element('DisplayName', caller && server.accountName(id))
  // Groups come first, as in the lists that https://github.com/ceph/s3-tests compares.
  const ordered = [...grants].sort((a, b) => Number('id' in a.grantee) - Number('id' in b.grantee))
  const list = ordered.map(({ grantee, permission }) => {
    const [type, name] =
      'id' in grantee ? ['CanonicalUser', person(grantee.id)] : ['Group', element('URI', uriOf(grantee.group))]
    return `<Grant><Grantee ${XSI} xsi:type="${type}">${name}</Grantee>${element('Permission', permission)}</Grant>`
  })
  return document(
    'AccessControlPolicy',
    `<Owner>${person(owner)}</Owner><AccessControlList>${list.join('')}</AccessControlList>`,
  )
}

/**
 * Reads an AccessControlPolicy.
 * @param owner canonical id, which an ACL cannot change
 * @throws S3Error MalformedACLError, AccessDenied for another owner, InvalidArgument, NotImplemented
 */
export async function readAclXml(bytes: Buffer, owner: string): Promise<Acl> {
  const root = await parseXml(bytes, 'AccessControlPolicy')
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

function readGrant(node: XmlNode): Grant {
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
  if (childText(grantee, 'EmailAddress') !== undefined)
    throw new S3Error('NotImplemented', {
      message: 'Accounts have no e-mail addresses here: grant by canonical id.',
    })
  throw new S3Error('MalformedACLError')
}
