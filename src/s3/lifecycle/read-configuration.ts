import { randomBytes } from 'node:crypto'
import { S3Error } from '../../common/errors/s3-error.js'
import { malformed, requireChildren } from '../../common/xml/strict-xml.js'
import { childText, parseXml, type XmlNode } from '../../common/xml/xml.js'
import type { LifecycleRule } from './configuration.js'
import { readAbort, readExpiration, readTransitions } from './read-actions.js'
import { readFilter } from './read-filter.js'

const MAX_RULES = 1000
/** Characters. */
const MAX_ID = 255

/** Buckets have no versions, so rules about them would have no effect. */
const OF_VERSIONS = ['NoncurrentVersionExpiration', 'NoncurrentVersionTransition']

/**
 * Reads a `<LifecycleConfiguration>`:
 * https://docs.aws.amazon.com/AmazonS3/latest/API/API_PutBucketLifecycleConfiguration.html, and the older form with a
 * prefix instead of a filter.
 * @param offered returns whether a storage class is available
 * @throws S3Error MalformedXML, InvalidRequest, InvalidArgument, InvalidTag, InvalidStorageClass, NotImplemented
 */
export async function readConfiguration(
  bytes: Buffer,
  offered: (storageClass: string) => boolean,
): Promise<readonly LifecycleRule[]> {
  const root = await parseXml(bytes, 'LifecycleConfiguration')
  requireChildren(root, 'LifecycleConfiguration', { many: ['Rule'] })
  const nodes = root.children.get('Rule') ?? []
  if (nodes.length === 0 || nodes.length > MAX_RULES)
    throw malformed(`A lifecycle configuration has 1 to ${MAX_RULES} rules.`)
  const rules = nodes.map((node) => readRule(node, offered))
  refuseMixedForms(rules)
  if (new Set(rules.map(({ id }) => id)).size < rules.length) {
    throw new S3Error('InvalidArgument', {
      message: 'Rule ID must be unique. Found same ID for more than one rule',
      fields: { ArgumentName: 'ID' },
    })
  }
  return rules
}

function readRule(node: XmlNode, offered: (storageClass: string) => boolean): LifecycleRule {
  requireChildren(node, 'Rule', {
    once: ['ID', 'Prefix', 'Filter', 'Status', 'Expiration', 'AbortIncompleteMultipartUpload'],
    many: ['Transition', ...OF_VERSIONS],
  })
  const id = readId(node)
  for (const name of OF_VERSIONS) {
    if (node.children.has(name)) {
      throw new S3Error('NotImplemented', {
        message: `Rule "${id}": ${name} is not implemented, because buckets of this gateway are not versioned.`,
      })
    }
  }
  const status = childText(node, 'Status')
  if (status !== 'Enabled' && status !== 'Disabled')
    throw malformed('The Status of a rule must be Enabled or Disabled.')
  const filter = readFilter(node)
  const expiration = readExpiration(node, filter)
  const transitions = readTransitions(node, id, offered)
  const abortDays = readAbort(node, filter)
  if (!expiration && transitions.length === 0 && abortDays === undefined)
    throw new S3Error('InvalidRequest', { message: 'At least one action needs to be specified in a rule' })
  return {
    id,
    enabled: status === 'Enabled',
    filter,
    ...(expiration && { expiration }),
    ...(transitions.length > 0 && { transitions }),
    ...(abortDays !== undefined && { abortDays }),
  }
}

/** Generates an id for a rule without one, as S3 does. */
function readId(node: XmlNode): string {
  const id = childText(node, 'ID') || randomBytes(24).toString('base64url')
  if (id.length > MAX_ID) {
    throw new S3Error('InvalidArgument', {
      message: `ID length should not exceed allowed limit of ${MAX_ID}`,
      fields: { ArgumentName: 'ID', ArgumentValue: id.slice(0, MAX_ID) },
    })
  }
  return id
}

function refuseMixedForms(rules: readonly LifecycleRule[]): void {
  if (new Set(rules.map(({ filter }) => filter.form === 'prefix')).size > 1) {
    throw new S3Error('InvalidRequest', {
      message:
        'Base level prefix cannot be used in Lifecycle V2, prefixes are only supported in the Filter. Write all rules in one form.',
    })
  }
}
