import { checksums, xml } from 'dealgate/plugin'
import {
  bucketOfArn,
  child,
  childOf,
  type NamedNode,
  notOffered,
  number,
  refused,
  required,
  tagsOf,
} from './control-values.js'
import { copyHeaders } from './native-order.js'
import type { BatchOperation } from './order.js'

/**
 * Reads the operation of CreateJob: https://docs.aws.amazon.com/AmazonS3/latest/API/API_control_JobOperation.html
 * @throws S3Error InvalidRequest, MalformedXML, NotImplemented
 */
export function operationOf({ name, node }: NamedNode): BatchOperation {
  switch (name) {
    case 'S3PutObjectCopy':
      return copyOf(node)
    case 'S3PutObjectTagging':
      xml.requireChildren(node, name, { once: ['TagSet'] })
      return { name: 'Tag', tags: tagsOf(childOf(node, 'TagSet')), replace: true }
    case 'S3DeleteObjectTagging':
      return { name: 'Untag' }
    case 'S3PutObjectAcl':
      return aclOf(node)
    case 'S3InitiateRestoreObject': {
      xml.requireChildren(node, name, { once: ['ExpirationInDays', 'GlacierJobTier'] })
      const tier = xml.text(node, 'GlacierJobTier')
      if (tier !== undefined && tier !== 'BULK' && tier !== 'STANDARD')
        throw refused('GlacierJobTier is BULK or STANDARD.')
      const days = number(required(node, 'ExpirationInDays'), 'ExpirationInDays')
      if (days < 1) throw refused('ExpirationInDays must be at least 1.')
      return { name: 'Restore', days, ...(tier && { tier: tier === 'BULK' ? 'Bulk' : 'Standard' }) }
    }
    case 'S3PutObjectLegalHold': {
      xml.requireChildren(node, name, { once: ['LegalHold'] })
      const hold = child(node, 'LegalHold')
      xml.requireChildren(hold, 'LegalHold', { once: ['Status'] })
      const status = xml.text(hold, 'Status')
      if (status !== 'ON' && status !== 'OFF') throw refused('The Status of a legal hold is ON or OFF.')
      return { name: 'LegalHold', status }
    }
    case 'S3PutObjectRetention': {
      xml.requireChildren(node, name, { once: ['BypassGovernanceRetention', 'Retention'] })
      const retention = child(node, 'Retention')
      xml.requireChildren(retention, 'Retention', { once: ['Mode', 'RetainUntilDate'] })
      const [mode, until] = [required(retention, 'Mode'), required(retention, 'RetainUntilDate')]
      const bypassGovernance = xml.text(node, 'BypassGovernanceRetention') === 'true'
      return { name: 'Retain', mode, until, bypassGovernance }
    }
    case 'S3ComputeObjectChecksum': {
      xml.requireChildren(node, name, { once: ['ChecksumAlgorithm', 'ChecksumType'] })
      const algorithm = xml.text(node, 'ChecksumAlgorithm') ?? 'CRC64NVME'
      if (!(checksums.algorithms as readonly string[]).includes(algorithm))
        throw refused(`${algorithm} is no checksum algorithm.`)
      if ((xml.text(node, 'ChecksumType') ?? 'FULL_OBJECT') !== 'FULL_OBJECT')
        throw notOffered('Checksums of parts: only FULL_OBJECT is offered.')
      return { name: 'Checksum', algorithm }
    }
    default:
      throw notOffered(`The operation ${name.slice(0, 100)} is not offered in jobs.`)
  }
}

const COPY = {
  once: [
    ...['TargetResource', 'CannedAccessControlList', 'MetadataDirective', 'NewObjectMetadata', 'NewObjectTagging'],
    ...['StorageClass', 'TargetKeyPrefix', 'ObjectLockLegalHoldStatus', 'ObjectLockMode', 'ObjectLockRetainUntilDate'],
    ...['ModifiedSinceConstraint', 'UnModifiedSinceConstraint', 'ChecksumAlgorithm', 'BucketKeyEnabled'],
  ],
}

const METADATA = {
  once: [
    ...['CacheControl', 'ContentDisposition', 'ContentEncoding', 'ContentLanguage', 'ContentType', 'HttpExpiresDate'],
    ...['UserMetadata', 'SSEAlgorithm'],
  ],
}

function copyOf(node: xml.Node): BatchOperation {
  const other = [...node.children.keys()].find((name) => !COPY.once.includes(name))
  if (other !== undefined) throw notOffered(`${other.slice(0, 100)} of S3PutObjectCopy is not offered.`)
  xml.requireChildren(node, 'S3PutObjectCopy', COPY)
  const text = (name: string) => xml.text(node, name)
  const metadata = childOf(node, 'NewObjectMetadata')
  if (metadata) xml.requireChildren(metadata, 'NewObjectMetadata', METADATA)
  const replaces =
    text('MetadataDirective') === 'REPLACE' || (metadata !== undefined && text('MetadataDirective') === undefined)
  const of = (name: string) => (metadata ? xml.text(metadata, name) : undefined)
  const tagging = childOf(node, 'NewObjectTagging')
  const headers = copyHeaders({
    ...{ storageClass: text('StorageClass'), acl: text('CannedAccessControlList'), encryption: of('SSEAlgorithm') },
    ...(tagging && { tags: tagsOf(tagging) }),
    ...(replaces && {
      metadata: userMetadata(metadata),
      headers: {
        'cache-control': of('CacheControl'),
        'content-disposition': of('ContentDisposition'),
        'content-encoding': of('ContentEncoding'),
        'content-language': of('ContentLanguage'),
        'content-type': of('ContentType'),
        expires: httpDate(of('HttpExpiresDate')),
      },
    }),
  })
  const more = {
    'x-amz-object-lock-legal-hold': text('ObjectLockLegalHoldStatus'),
    'x-amz-object-lock-mode': text('ObjectLockMode'),
    'x-amz-object-lock-retain-until-date': text('ObjectLockRetainUntilDate'),
    'x-amz-checksum-algorithm': text('ChecksumAlgorithm'),
    'x-amz-copy-source-if-modified-since': httpDate(text('ModifiedSinceConstraint')),
    'x-amz-copy-source-if-unmodified-since': httpDate(text('UnModifiedSinceConstraint')),
  }
  for (const [name, value] of Object.entries(more)) if (value !== undefined) headers[name] = value
  return {
    ...{ name: 'Copy', targetBucket: bucketOfArn(required(node, 'TargetResource'), 'TargetResource'), headers },
    targetPrefix: text('TargetKeyPrefix') === undefined ? '' : `${text('TargetKeyPrefix')}/`,
  }
}

function httpDate(text: string | undefined): string | undefined {
  if (text === undefined) return undefined
  const time = Date.parse(text)
  if (Number.isNaN(time)) throw refused('A time is not in ISO 8601.')
  return new Date(time).toUTCString()
}

function userMetadata(metadata: xml.Node | undefined): (readonly [string, string])[] {
  const entries = metadata && childOf(metadata, 'UserMetadata')?.children.get('entry')
  return (entries ?? []).map((entry) => [required(entry, 'key'), xml.text(entry, 'value') ?? ''] as const)
}

function aclOf(node: xml.Node): BatchOperation {
  const policy = child(node, 'AccessControlPolicy')
  xml.requireChildren(policy, 'AccessControlPolicy', { once: ['CannedAccessControlList', 'AccessControlList'] })
  const canned = xml.text(policy, 'CannedAccessControlList')
  if (canned !== undefined) return { name: 'Acl', headers: { 'x-amz-acl': canned } }
  const grants = childOf(child(policy, 'AccessControlList'), 'Grants')?.children.get('member') ?? []
  const headers: Record<string, string> = {}
  for (const grant of grants) {
    const grantee = child(grant, 'Grantee')
    const type = required(grantee, 'TypeIdentifier')
    const name = GRANTS[required(grant, 'Permission')]
    if (!name || !['id', 'emailAddress', 'uri'].includes(type))
      throw refused('A grant has no such permission or grantee.')
    const one = `${type}="${required(grantee, 'Identifier').replaceAll('"', '')}"`
    headers[name] = headers[name] === undefined ? one : `${headers[name]}, ${one}`
  }
  if (grants.length === 0) throw refused('AccessControlList has no grants.')
  return { name: 'Acl', headers }
}

const GRANTS: Readonly<Record<string, string>> = {
  FULL_CONTROL: 'x-amz-grant-full-control',
  READ: 'x-amz-grant-read',
  READ_ACP: 'x-amz-grant-read-acp',
  WRITE_ACP: 'x-amz-grant-write-acp',
}
