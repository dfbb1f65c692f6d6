import type { IncomingHttpHeaders } from 'node:http'
import { type Acl, cannedAcl, type Grant, type Permission } from '../../access/decision/acl.js'
import { S3Error } from '../../common/errors/s3-error.js'
import { headerText } from '../vocabulary/headers.js'
import { groupOf, isCanonicalId } from './grantees.js'

const GRANTS: Readonly<Record<string, Permission>> = {
  'x-amz-grant-read': 'READ',
  'x-amz-grant-write': 'WRITE',
  'x-amz-grant-read-acp': 'READ_ACP',
  'x-amz-grant-write-acp': 'WRITE_ACP',
  'x-amz-grant-full-control': 'FULL_CONTROL',
}

/** Headers with an ACL, which operations that support ACLs declare. */
export const ACL_HEADERS: readonly string[] = ['x-amz-acl', ...Object.keys(GRANTS)]

/** Those of requests that store an object: there is no right to write an object. */
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
  const grants = given.flatMap((name) => granteesOf(name, headerText(headers, name) ?? ''))
  return { owner: owners.owner, grants }
}

/** Reads `id="...", uri="..."`. */
function granteesOf(header: string, value: string): Grant[] {
  const permission = GRANTS[header] as Permission
  return value.split(',').map((part): Grant => {
    const [, type = '', text = ''] = /^\s*(\w+)\s*=\s*"?([^"]*?)"?\s*$/.exec(part) ?? []
    const wrong = (message: string) =>
      new S3Error('InvalidArgument', {
        message,
        fields: { ArgumentName: header, ArgumentValue: part.trim().slice(0, 200) },
      })
    switch (type.toLowerCase()) {
      case 'id':
        if (!isCanonicalId(text)) throw wrong('Invalid id')
        return { grantee: { id: text }, permission }
      case 'uri': {
        const group = groupOf(text)
        if (!group) throw wrong('Invalid group uri')
        return { grantee: { group }, permission }
      }
      case 'emailaddress':
        throw new S3Error('NotImplemented', {
          message: 'Accounts have no e-mail addresses here: grant by canonical id.',
          fields: { Header: header },
        })
      default:
        throw wrong('Argument format not recognized')
    }
  })
}
