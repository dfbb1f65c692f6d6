import { S3Error } from '../../../common/errors/s3-error.js'
import {
  childText,
  document,
  element,
  notStrict,
  parseXml,
  requireChildren,
  requiredText,
  within,
  type XmlNode,
} from '../../../common/xml.js'
import type { BucketOwner, Grant } from '../../api/access.js'
import { whyUnfit } from '../../gateway/keys.js'
import { grantElement, readGrant } from '../access/acl-syntax.js'

declare module '../../api/settings.js' {
  interface SettingTypes {
    logging: LoggingConfiguration
  }
}

const DATE_SOURCES = ['EventTime', 'DeliveryTime'] as const

/** Where S3 writes the access log of a bucket. */
export interface LoggedInto {
  /** The bucket. */
  readonly target: string
  readonly prefix: string
  /** The date in the keys of PartitionedPrefix; absent for SimplePrefix. */
  readonly partitionBy?: (typeof DATE_SOURCES)[number]
  /** Rights in the objects, besides those of their owner. */
  readonly grants?: readonly Grant[]
}

/** With the owner of the bucket, who owns the target, too. */
export type LoggingConfiguration = LoggedInto & BucketOwner

/** Bytes of a key after the prefix: account, region, bucket, date and name. */
const MAX_KEY_BELOW_PREFIX = 256

/** https://docs.aws.amazon.com/AmazonS3/latest/API/API_LoggingEnabled.html */
const PERMISSIONS: readonly string[] = ['READ', 'WRITE', 'FULL_CONTROL']

/**
 * Reads a `<BucketLoggingStatus>`; undefined for an empty one.
 * @param maxKeyBytes of keys in this server
 * @throws S3Error MalformedXML, InvalidArgument, MethodNotAllowed for a grant by e-mail
 */
export async function readLogging(bytes: Buffer, maxKeyBytes: number): Promise<LoggedInto | undefined> {
  const root = await parseXml(bytes, 'BucketLoggingStatus')
  requireChildren(root, 'BucketLoggingStatus', { once: ['LoggingEnabled'] })
  const node = root.children.get('LoggingEnabled')?.[0]
  if (!node) return undefined
  const name = 'LoggingEnabled'
  requireChildren(node, name, { once: ['TargetBucket', 'TargetPrefix', 'TargetGrants', 'TargetObjectKeyFormat'] })
  const target = requiredText(node, name, 'TargetBucket')
  const prefix = requiredText(node, name, 'TargetPrefix')
  const unfit = prefix === '' ? undefined : whyUnfit(`${prefix}x`)
  const isLong = Buffer.byteLength(prefix) > maxKeyBytes - MAX_KEY_BELOW_PREFIX
  if (unfit !== undefined || isLong)
    throw new S3Error('InvalidArgument', {
      message: `No key can begin with this TargetPrefix: ${unfit ?? `it has more than ${maxKeyBytes - MAX_KEY_BELOW_PREFIX} bytes`}.`,
      fields: { ArgumentName: 'TargetPrefix', ArgumentValue: prefix.slice(0, 100) },
    })
  return { target, prefix, ...readKeyFormat(node), ...readGrants(node) }
}

function readKeyFormat(node: XmlNode): Pick<LoggedInto, 'partitionBy'> {
  const format = node.children.get('TargetObjectKeyFormat')?.[0]
  if (!format) return {}
  requireChildren(format, 'TargetObjectKeyFormat', { once: ['SimplePrefix', 'PartitionedPrefix'] })
  const simple = format.children.get('SimplePrefix')?.[0]
  const partitioned = format.children.get('PartitionedPrefix')?.[0]
  if (simple && partitioned) throw notStrict('TargetObjectKeyFormat is SimplePrefix or PartitionedPrefix.')
  if (simple) requireChildren(simple, 'SimplePrefix', {})
  if (!partitioned) return {}
  requireChildren(partitioned, 'PartitionedPrefix', { once: ['PartitionDateSource'] })
  const source = childText(partitioned, 'PartitionDateSource') ?? 'DeliveryTime'
  const partitionBy = DATE_SOURCES.find((one) => one === source)
  if (!partitionBy) throw notStrict(`PartitionDateSource is one of ${DATE_SOURCES.join(', ')}.`)
  return { partitionBy }
}

function readGrants(node: XmlNode): Pick<LoggedInto, 'grants'> {
  const list = node.children.get('TargetGrants')?.[0]
  if (!list) return {}
  requireChildren(list, 'TargetGrants', { many: ['Grant'] })
  const grants = (list.children.get('Grant') ?? []).map((grant) => within(grant, readGrant))
  if (grants.some(({ permission }) => !PERMISSIONS.includes(permission)))
    throw notStrict(`The Permission of a TargetGrant is one of ${PERMISSIONS.join(', ')}.`)
  return grants.length > 0 ? { grants } : {}
}

/** @param nameOf display name of an account */
export function loggingDocument(
  logging: LoggedInto | undefined,
  nameOf: (canonicalId: string) => string | undefined,
): string {
  if (!logging) return document('BucketLoggingStatus', '')
  const { target, prefix, partitionBy, grants = [] } = logging
  const format =
    partitionBy === undefined
      ? '<SimplePrefix/>'
      : `<PartitionedPrefix>${element('PartitionDateSource', partitionBy)}</PartitionedPrefix>`
  const list = grants.map((grant) => grantElement(grant, nameOf)).join('')
  return document(
    'BucketLoggingStatus',
    [
      '<LoggingEnabled>',
      element('TargetBucket', target),
      list === '' ? '' : `<TargetGrants>${list}</TargetGrants>`,
      element('TargetPrefix', prefix),
      `<TargetObjectKeyFormat>${format}</TargetObjectKeyFormat>`,
      '</LoggingEnabled>',
    ].join(''),
  )
}
