import { S3Error } from '../../../common/errors/s3-error.js'
import type { Grant, Grantee, Group, Ownership, Permission } from '../../api/access.js'
import { ANONYMOUS_ID } from '../../auth/credentials.js'

/** The canned ACLs: https://docs.aws.amazon.com/AmazonS3/latest/userguide/acl-overview.html#canned-acl */
const CANNED = [
  'private',
  'public-read',
  'public-read-write',
  'authenticated-read',
  'bucket-owner-read',
  'bucket-owner-full-control',
  'log-delivery-write',
  'aws-exec-read',
] as const

export type CannedName = (typeof CANNED)[number]

/** Throws InvalidArgument for an unknown name. */
export function readCannedName(text: string): CannedName {
  const name = CANNED.find((one) => one === text)
  if (name) return name
  throw new S3Error('InvalidArgument', { fields: { ArgumentName: 'x-amz-acl', ArgumentValue: text.slice(0, 100) } })
}

/** The headers that grant a permission each. */
export const GRANTS: Readonly<Record<string, Permission>> = {
  'x-amz-grant-read': 'READ',
  'x-amz-grant-write': 'WRITE',
  'x-amz-grant-read-acp': 'READ_ACP',
  'x-amz-grant-write-acp': 'WRITE_ACP',
  'x-amz-grant-full-control': 'FULL_CONTROL',
}

/**
 * Reads `id="...", uri="..."` of a header of GRANTS.
 * @throws S3Error InvalidArgument, MethodNotAllowed for an e-mail address
 */
export function readGrantees(header: string, value: string): Grant[] {
  const permission = GRANTS[header] as Permission
  return value.split(',').map((part) => ({ grantee: readGrantee(header, part), permission }))
}

function readGrantee(header: string, part: string): Grantee {
  const [, type = '', text = ''] = /^\s*(\w+)\s*=\s*"?([^"]*?)"?\s*$/.exec(part) ?? []
  const wrong = (message: string) =>
    new S3Error('InvalidArgument', {
      message,
      fields: { ArgumentName: header, ArgumentValue: part.trim().slice(0, 200) },
    })
  switch (type.toLowerCase()) {
    case 'id':
      if (!isCanonicalId(text)) throw wrong('Invalid id')
      return { id: text }
    case 'uri': {
      const group = groupOf(text)
      if (!group) throw wrong('Invalid group uri')
      return { group }
    }
    case 'emailaddress':
      throw byEmail({ Header: header })
    default:
      throw wrong('Argument format not recognized')
  }
}

/** S3 answers so since October 2025: https://docs.aws.amazon.com/AmazonS3/latest/API/API_PutBucketAcl.html */
export function byEmail(fields: Record<string, string> = {}): S3Error {
  return new S3Error('MethodNotAllowed', {
    message: 'Grants by e-mail address have ended: grant by canonical id.',
    fields,
  })
}

const URIS: Readonly<Record<Group, string>> = {
  AllUsers: 'http://acs.amazonaws.com/groups/global/AllUsers',
  AuthenticatedUsers: 'http://acs.amazonaws.com/groups/global/AuthenticatedUsers',
  LogDelivery: 'http://acs.amazonaws.com/groups/s3/LogDelivery',
}

export function uriOf(group: Group): string {
  return URIS[group]
}

/** Returns the group of a URI; undefined for an unknown one. */
export function groupOf(uri: string): Group | undefined {
  return (Object.keys(URIS) as Group[]).find((group) => URIS[group] === uri)
}

export function isCanonicalId(id: string): boolean {
  return /^[0-9a-f]{64}$/.test(id) || id === ANONYMOUS_ID
}

/**
 * The grantees of a header as condition keys show them, `id=...` or `uri=...` without quotes, each once; of several
 * also the whole list. A Deny applies if one of the values matches, an Allow if all do.
 */
export function granteeTexts(header: string, value: string): readonly string[] {
  const texts = readGrantees(header, value).map(({ grantee }) =>
    'id' in grantee ? `id=${grantee.id}` : `uri=${uriOf(grantee.group)}`,
  )
  const each = [...new Set(texts)]
  return each.length === 1 ? each : [...each, texts.join(','), texts.join(', ')]
}

const OWNERSHIPS: readonly Ownership[] = ['BucketOwnerEnforced', 'BucketOwnerPreferred', 'ObjectWriter']

/** Throws InvalidArgument for an unknown object ownership. */
export function readOwnership(text: string, code: 'InvalidArgument' | 'MalformedXML' = 'InvalidArgument'): Ownership {
  const ownership = OWNERSHIPS.find((one) => one === text)
  if (ownership) return ownership
  throw new S3Error(code, {
    message: 'Object ownership is BucketOwnerEnforced, BucketOwnerPreferred or ObjectWriter.',
    fields: { ArgumentName: 'ObjectOwnership', ArgumentValue: text.slice(0, 100) },
  })
}
