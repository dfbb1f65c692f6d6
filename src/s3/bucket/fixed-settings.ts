import type { AnyOperation, Operation } from '../../api/operation.js'
import type { S3Code } from '../../common/errors/codes.js'
import { S3Error } from '../../common/errors/s3-error.js'
import { childText, document, element, parseXml } from '../../common/xml.js'
import { requireDocument } from '../../http/read-request.js'
import { empty, noContent, xml } from '../../http/reply.js'
import { defineOperation } from '../../plugins/define-plugin.js'
import { requireBucket } from './owner.js'

/** Accepts the empty status, which turns logging off; it is always off. */
export const putBucketLogging = defineOperation({
  name: 'PutBucketLogging',
  source: 'https://docs.aws.amazon.com/AmazonS3/latest/API/API_PutBucketLogging.html',
  partly: 'The empty status, which is always so; LoggingEnabled is NotImplemented.',
  access: 'owner',
  action: 's3:PutBucketLogging',
  needs: { bucket: ['write'] },
  on: { method: 'PUT', resource: 'bucket', query: ['logging'] },
  async run(request, context) {
    const bytes = await requireDocument(request.body, context.limits.maxDocumentBytes)
    const { children } = await parseXml(bytes, 'BucketLoggingStatus')
    if (children.has('LoggingEnabled'))
      throw new S3Error('NotImplemented', {
        message: 'Requests are not logged into buckets: BucketLoggingStatus must be empty.',
      })
    if (children.size > 0) throw new S3Error('MalformedXML')
    return empty()
  },
})

/** Accepts BucketOwner, which is always the payer. */
export const putBucketRequestPayment = defineOperation({
  name: 'PutBucketRequestPayment',
  source: 'https://docs.aws.amazon.com/AmazonS3/latest/API/API_PutBucketRequestPayment.html',
  partly: 'BucketOwner, which is always so; Requester is NotImplemented.',
  access: 'owner',
  action: 's3:PutBucketRequestPayment',
  needs: { bucket: ['write'] },
  on: { method: 'PUT', resource: 'bucket', query: ['requestPayment'] },
  async run(request, context) {
    const bytes = await requireDocument(request.body, context.limits.maxDocumentBytes)
    const payer = childText(await parseXml(bytes, 'RequestPaymentConfiguration'), 'Payer')
    if (payer === 'Requester')
      throw new S3Error('NotImplemented', { message: 'Requester pays is not implemented: Payer must be BucketOwner.' })
    if (payer !== 'BucketOwner')
      throw new S3Error('MalformedXML', { message: 'Payer must be BucketOwner or Requester.' })
    return empty()
  },
})

/** A GET of a sub-resource that no bucket here ever has: the document or the error of S3 for a bucket without one. */
interface Unconfigured {
  readonly name: string
  readonly subresource: string
  /** Named without `s3:`. */
  readonly action: string
  /** See Operation.partly. */
  readonly partly: string
  readonly answer: { readonly root: string; readonly contents: string } | S3Code
  /** True where a key pair whose rights are below a prefix may ask, too. */
  readonly anyRight?: true
}

const gets: readonly Unconfigured[] = [
  {
    name: 'GetBucketVersioning',
    subresource: 'versioning',
    action: 'GetBucketVersioning',
    partly: 'Always the empty configuration: never versioned.',
    answer: { root: 'VersioningConfiguration', contents: '' },
    anyRight: true,
  },
  {
    name: 'GetBucketAbac',
    subresource: 'abac',
    action: 'GetBucketAbac',
    partly: 'Always Disabled.',
    answer: { root: 'AbacStatus', contents: '<Status>Disabled</Status>' },
  },
  {
    name: 'GetBucketAccelerateConfiguration',
    subresource: 'accelerate',
    action: 'GetAccelerateConfiguration',
    partly: 'Always the empty configuration: never accelerated.',
    answer: { root: 'AccelerateConfiguration', contents: '' },
  },
  {
    name: 'GetBucketEncryption',
    subresource: 'encryption',
    action: 'GetEncryptionConfiguration',
    partly: 'There is never a configuration: ServerSideEncryptionConfigurationNotFoundError.',
    answer: 'ServerSideEncryptionConfigurationNotFoundError',
  },
  {
    name: 'GetBucketLogging',
    subresource: 'logging',
    action: 'GetBucketLogging',
    partly: 'Always the empty status: nothing is logged into a bucket.',
    answer: { root: 'BucketLoggingStatus', contents: '' },
  },
  {
    name: 'GetBucketReplication',
    subresource: 'replication',
    action: 'GetReplicationConfiguration',
    partly: 'There is never a configuration: ReplicationConfigurationNotFoundError.',
    answer: 'ReplicationConfigurationNotFoundError',
  },
  {
    name: 'GetBucketRequestPayment',
    subresource: 'requestPayment',
    action: 'GetBucketRequestPayment',
    partly: 'Always BucketOwner.',
    answer: { root: 'RequestPaymentConfiguration', contents: '<Payer>BucketOwner</Payer>' },
  },
  {
    name: 'GetBucketWebsite',
    subresource: 'website',
    action: 'GetBucketWebsite',
    partly: 'There is never a configuration: NoSuchWebsiteConfiguration.',
    answer: 'NoSuchWebsiteConfiguration',
  },
  {
    name: 'GetObjectLockConfiguration',
    subresource: 'object-lock',
    action: 'GetBucketObjectLockConfiguration',
    partly: 'There is never a configuration: ObjectLockConfigurationNotFoundError.',
    answer: 'ObjectLockConfigurationNotFoundError',
  },
]

/** S3 answers 204 whether or not there was a configuration. */
const deletes = [
  ['DeleteBucketEncryption', 'encryption', 'PutEncryptionConfiguration'],
  ['DeleteBucketReplication', 'replication', 'PutReplicationConfiguration'],
  ['DeleteBucketWebsite', 'website', 'DeleteBucketWebsite'],
] as const

const source = (name: string) => `https://docs.aws.amazon.com/AmazonS3/latest/API/API_${name}.html`

/** Operations on configurations that the gateway has no place for, as S3 answers them for a bucket without one. */
export const unconfiguredOperations: readonly AnyOperation[] = [
  ...gets.map(get),
  ...deletes.map(([name, subresource, action]) => {
    const operation: Operation<'bucket'> = {
      name,
      source: source(name),
      partly: 'There is never a configuration to delete.',
      access: 'owner',
      action: `s3:${action}`,
      on: { method: 'DELETE', resource: 'bucket', query: [subresource] },
      async run(request, context) {
        context.checks.requireWholeBucket(request.bucket, 'write')
        return noContent()
      },
    }
    return operation
  }),
]

function get({ name, subresource, action, partly, answer, anyRight }: Unconfigured): AnyOperation {
  const operation: Operation<'bucket'> = {
    name,
    source: source(name),
    partly,
    access: 'signed',
    action: `s3:${action}`,
    on: { method: 'GET', resource: 'bucket', query: [subresource] },
    async run(request, context) {
      if (!anyRight) context.checks.requireWholeBucket(request.bucket, 'read')
      await requireBucket(context, request.bucket)
      if (typeof answer === 'string') throw new S3Error(answer, { fields: { BucketName: request.bucket } })
      return xml(document(answer.root, answer.contents))
    },
  }
  return operation
}

/**
 * Features of which a bucket may have many configurations, each with an id. Here it has none: lists are empty, and no
 * id is known.
 */
export const configurationsById = [
  ...none('Analytics', 'analytics', 'ListBucketAnalyticsConfigurationResult'),
  ...none('Inventory', 'inventory', 'ListInventoryConfigurationsResult'),
  ...none('Metrics', 'metrics', 'ListMetricsConfigurationsResult'),
  ...none('IntelligentTiering', 'intelligent-tiering', 'ListBucketIntelligentTieringConfigurationsOutput'),
]

/** @param root of the document that lists them: S3 has no rule for that name */
function none(feature: string, subresource: string, root: string): AnyOperation[] {
  const source = (name: string) => `https://docs.aws.amazon.com/AmazonS3/latest/API/API_${name}.html`
  const one = (verb: 'Get' | 'Delete', method: 'GET' | 'DELETE') => {
    const name = `${verb}Bucket${feature}Configuration`
    return defineOperation({
      name,
      source: source(name),
      partly: 'There is never a configuration: NoSuchConfiguration.',
      access: method === 'GET' ? 'signed' : 'owner',
      action: `s3:${method === 'GET' ? 'Get' : 'Put'}${feature}Configuration`,
      on: { method, resource: 'bucket', query: [subresource, 'id'] },
      async run(request, context) {
        context.checks.requireWholeBucket(request.bucket, method === 'GET' ? 'read' : 'write')
        await requireBucket(context, request.bucket)
        throw new S3Error('NoSuchConfiguration', { fields: { BucketName: request.bucket } })
      },
    })
  }
  const list = `ListBucket${feature}Configurations`
  return [
    one('Get', 'GET'),
    one('Delete', 'DELETE'),
    defineOperation({
      name: list,
      source: source(list),
      partly: 'The list is always empty.',
      access: 'signed',
      action: `s3:Get${feature}Configuration`,
      on: { method: 'GET', resource: 'bucket', query: [subresource], params: ['continuation-token'] },
      async run(request, context) {
        context.checks.requireWholeBucket(request.bucket, 'read')
        await requireBucket(context, request.bucket)
        return xml(document(root, element('IsTruncated', false)))
      },
    }),
  ]
}
