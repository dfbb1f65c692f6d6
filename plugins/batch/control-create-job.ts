import { checksums, S3Error, xml } from 'dealgate/plugin'
import { checkedFields, copyHeaders } from './native-order.js'
import {
  type BatchOperation,
  type BatchOrder,
  type FilterSource,
  MANIFEST_FORMATS,
  type ManifestSource,
  type ReportOrder,
  type TagPair,
} from './order.js'

/** What CreateJob orders. */
interface CreateJob {
  readonly order: Omit<BatchOrder, 'client'>
  readonly token: string
}

const REQUEST = {
  once: [
    ...['AccountId', 'ConfirmationRequired', 'Operation', 'Report', 'ClientRequestToken', 'Manifest'],
    ...['ManifestGenerator', 'Description', 'Priority', 'RoleArn', 'Tags'],
  ],
}

/**
 * Reads the document of CreateJob: https://docs.aws.amazon.com/AmazonS3/latest/API/API_control_CreateJob.html
 * @throws S3Error InvalidRequest, MalformedXML, NotImplemented
 */
export function readCreateJob(root: xml.Node): CreateJob {
  xml.requireChildren(root, 'CreateJobRequest', REQUEST)
  const operation = only(child(root, 'Operation'), 'Operation')
  const [manifest, generator] = [childOf(root, 'Manifest'), childOf(root, 'ManifestGenerator')]
  if ((manifest === undefined) === (generator === undefined))
    throw refused('State the objects by a Manifest or a ManifestGenerator, and not by both.')
  const role = required(root, 'RoleArn')
  if (!/^arn:[^:]+:iam::\d{12}:role\/.+/.test(role)) throw refused('RoleArn is not the ARN of a role.')
  const token = required(root, 'ClientRequestToken')
  if (!/^[ -~]{1,64}$/.test(token)) throw refused('ClientRequestToken has 1 to 64 printable characters.')
  const priority = number(required(root, 'Priority'), 'Priority')
  const report = child(root, 'Report')
  const order = reportOf(report)
  return {
    token,
    order: {
      operation: operationOf(operation),
      ...(manifest ? { manifest: manifestOf(manifest) } : generator && { filter: filterOf(generator) }),
      ...(order && { report: order }),
      description: xml.text(root, 'Description') ?? '',
      priority,
      tags: tagsOf(childOf(root, 'Tags')),
      confirmationRequired: xml.text(root, 'ConfirmationRequired') === 'true',
      dryRun: false,
      control: {
        Operation: wrapped('Operation', child(root, 'Operation')),
        ...(manifest && { Manifest: wrapped('Manifest', manifest) }),
        ...(generator && { ManifestGenerator: wrapped('ManifestGenerator', generator) }),
        Report: wrapped('Report', report),
        RoleArn: xml.element('RoleArn', role),
        name: operation.name,
      },
    },
  }
}

/** The markup of an element that was parsed. */
function wrapped(name: string, { text, children }: xml.Node): string {
  const inner = [...children].flatMap(([child, nodes]) => nodes.map((node) => wrapped(child, node))).join('')
  return `<${name}>${children.size > 0 ? inner : xml.escape(text)}</${name}>`
}

interface NamedNode {
  readonly name: string
  readonly node: xml.Node
}

/** The one child of a union. */
function only(node: xml.Node, name: string): NamedNode {
  const [first, ...others] = [...node.children]
  const given = first?.[1][0]
  if (!first || !given || others.length > 0 || first[1].length > 1) throw refused(`${name} must hold one element.`)
  return { name: first[0], node: given }
}

function operationOf({ name, node }: NamedNode): BatchOperation {
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

function manifestOf(node: xml.Node): ManifestSource {
  xml.requireChildren(node, 'Manifest', { once: ['Spec', 'Location'] })
  const [spec, location] = [child(node, 'Spec'), child(node, 'Location')]
  const format = MANIFEST_FORMATS.find((known) => known === xml.text(spec, 'Format'))
  if (!format) throw refused(`The Format of a manifest is ${MANIFEST_FORMATS.join(' or ')}.`)
  const fields = (childOf(spec, 'Fields')?.children.get('member') ?? []).map(({ text }) => text)
  const [bucket, key] = objectOfArn(required(location, 'ObjectArn'))
  const versionId = xml.text(location, 'ObjectVersionId')
  return {
    ...{ format, fields: format === MANIFEST_FORMATS[0] ? checkedFields(fields) : [], bucket, key },
    ...(versionId !== undefined && { versionId }),
    etag: required(location, 'ETag').replaceAll('"', ''),
  }
}

const FILTER = {
  once: [
    ...['CreatedAfter', 'CreatedBefore', 'KeyNameConstraint', 'ObjectSizeGreaterThanBytes'],
    ...['ObjectSizeLessThanBytes', 'MatchAnyStorageClass'],
  ],
}

const GENERATOR = ['SourceBucket', 'ExpectedBucketOwner', 'EnableManifestOutput', 'Filter']

function filterOf(generator: xml.Node): FilterSource {
  const { name, node } = only(generator, 'ManifestGenerator')
  if (name !== 'S3JobManifestGenerator') throw notOffered(`${name.slice(0, 100)} is not offered.`)
  if (xml.text(node, 'EnableManifestOutput') === 'true')
    throw notOffered('EnableManifestOutput is not offered: the report names all objects of a job.')
  const unknown = [...node.children.keys()].find((one) => !GENERATOR.includes(one))
  if (unknown !== undefined) throw notOffered(`${unknown.slice(0, 100)} of S3JobManifestGenerator is not offered.`)
  const owner = xml.text(node, 'ExpectedBucketOwner')
  const filter = childOf(node, 'Filter')
  const stray = [...(filter?.children.keys() ?? [])].find((one) => !FILTER.once.includes(one))
  if (stray !== undefined) throw notOffered(`The filter ${stray.slice(0, 100)} is not offered.`)
  const members = (from: xml.Node | undefined, list: string) =>
    (from && childOf(from, list)?.children.get('member'))?.map(({ text }) => text) ?? []
  const keys = filter && childOf(filter, 'KeyNameConstraint')
  const time = (one: string) => {
    const text = filter && xml.text(filter, one)
    if (text === undefined) return undefined
    const parsed = Date.parse(text)
    if (Number.isNaN(parsed)) throw refused(`${one} is not a time in ISO 8601.`)
    return parsed
  }
  const bytes = (one: string) => {
    const text = filter && xml.text(filter, one)
    return text === undefined ? undefined : number(text, one)
  }
  const [createdAfter, createdBefore] = [time('CreatedAfter'), time('CreatedBefore')]
  const [greater, less] = [bytes('ObjectSizeGreaterThanBytes'), bytes('ObjectSizeLessThanBytes')]
  return {
    bucket: bucketOfArn(required(node, 'SourceBucket'), 'SourceBucket'),
    prefixes: members(keys, 'MatchAnyPrefix'),
    suffixes: members(keys, 'MatchAnySuffix'),
    substrings: members(keys, 'MatchAnySubstring'),
    ...(createdAfter !== undefined && { createdAfter }),
    ...(createdBefore !== undefined && { createdBefore }),
    ...(greater !== undefined && { sizeGreaterThan: greater }),
    ...(less !== undefined && { sizeLessThan: less }),
    storageClasses: members(filter, 'MatchAnyStorageClass'),
    ...{ tags: [], dealStates: [], versions: 'Current' },
    ...(owner !== undefined && { owner }),
  }
}

function reportOf(node: xml.Node): ReportOrder | undefined {
  xml.requireChildren(node, 'Report', {
    once: ['Enabled', 'Bucket', 'Format', 'Prefix', 'ReportScope', 'ExpectedBucketOwner'],
  })
  if (xml.text(node, 'Enabled') !== 'true') return undefined
  if ((xml.text(node, 'Format') ?? FORMAT) !== FORMAT) throw refused(`The Format of a report is ${FORMAT}.`)
  const scope = xml.text(node, 'ReportScope') ?? 'AllTasks'
  if (scope !== 'AllTasks' && scope !== 'FailedTasksOnly') throw refused('ReportScope is AllTasks or FailedTasksOnly.')
  const prefix = (xml.text(node, 'Prefix') ?? '').replace(/\/$/, '')
  const owner = xml.text(node, 'ExpectedBucketOwner')
  const bucket = bucketOfArn(required(node, 'Bucket'), 'Bucket of Report')
  return { bucket, prefix, scope, ...(owner !== undefined && { owner }) }
}

const FORMAT = 'Report_CSV_20180820'

/** The tags in `<member>` elements. */
export function tagsOf(set: xml.Node | undefined): TagPair[] {
  return (set?.children.get('member') ?? []).map((tag) => ({
    key: required(tag, 'Key'),
    value: xml.text(tag, 'Value') ?? '',
  }))
}

function bucketOfArn(text: string, name: string): string {
  const bucket = /^arn:[^:]+:s3:::([^/]+)$/.exec(text)?.[1]
  if (bucket === undefined) throw refused(`${name} is not the ARN of a bucket.`)
  return bucket
}

function objectOfArn(text: string): [bucket: string, key: string] {
  const [, bucket, key] = /^arn:[^:]+:s3:::([^/]+)\/(.+)$/s.exec(text) ?? []
  if (bucket === undefined || key === undefined) throw refused('ObjectArn is not the ARN of an object.')
  return [bucket, key]
}

function childOf(node: xml.Node, name: string): xml.Node | undefined {
  return node.children.get(name)?.[0]
}

function child(node: xml.Node, name: string): xml.Node {
  const found = childOf(node, name)
  if (!found) throw xml.malformed(`The element ${name} is missing.`)
  return found
}

function required(node: xml.Node, name: string): string {
  const text = xml.text(node, name)
  if (text === undefined || text === '') throw refused(`${name} is missing.`)
  return text
}

function number(text: string, name: string): number {
  const value = /^\d{1,16}$/.test(text) ? Number(text) : Number.NaN
  const most = name === 'Priority' ? 2_147_483_647 : Number.MAX_SAFE_INTEGER
  if (!(value <= most)) throw refused(`${name} is not a whole number from 0 to ${most}.`)
  return value
}

export function refused(message: string): S3Error {
  return new S3Error('InvalidRequest', { message })
}

function notOffered(message: string): S3Error {
  return new S3Error('NotImplemented', { message })
}
