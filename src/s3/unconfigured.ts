import type { S3Code } from '../common/errors/codes.js'
import { S3Error } from '../common/errors/s3-error.js'
import { document } from '../common/xml/xml.js'
import type { Operation } from '../plugins/forms/operation.js'
import type { AnyOperation } from '../plugins/forms/plugin.js'
import { noContent, xml } from '../response/reply.js'
import { requireBucket } from './vocabulary/buckets.js'

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
