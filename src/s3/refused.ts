import { S3Error } from '../../common/errors/s3-error.js'
import type { AnyOperation, Operation } from '../api/operation.js'
import type { Method, Resource } from '../api/request.js'

type Refused = readonly [
  name: string,
  method: Method,
  resource: Resource,
  query: readonly string[],
  params?: readonly string[],
  header?: string,
]

interface Refusal {
  readonly why: string
  readonly operations: readonly Refused[]
}

/**
 * Operations of S3 that no gateway of this kind can support. Every request without an operation is refused; these are
 * refused by name and with a reason. None of them reads its body or changes anything.
 */
const refusals: readonly Refusal[] = [
  {
    why: 'the encryption of an object changes with its bytes, by a copy onto itself',
    operations: [['UpdateObjectEncryption', 'PUT', 'object', ['encryption'], ['versionId']]],
  },
  { why: 'buckets are not replicated', operations: [['PutBucketReplication', 'PUT', 'bucket', ['replication']]] },
  {
    why: 'there is no accelerated endpoint',
    operations: [['PutBucketAccelerateConfiguration', 'PUT', 'bucket', ['accelerate']]],
  },
  { why: 'rights cannot depend on tags', operations: [['PutBucketAbac', 'PUT', 'bucket', ['abac']]] },
  {
    why: 'access to buckets is not analysed',
    operations: [
      ['PutBucketAnalyticsConfiguration', 'PUT', 'bucket', ['analytics'], ['id']],
      ['PutBucketMetricsConfiguration', 'PUT', 'bucket', ['metrics'], ['id']],
    ],
  },
  {
    why: 'objects are not moved between storage classes by their use',
    operations: [['PutBucketIntelligentTieringConfiguration', 'PUT', 'bucket', ['intelligent-tiering'], ['id']]],
  },
  {
    why: 'there are no tables of metadata',
    operations: [
      ['CreateBucketMetadataConfiguration', 'POST', 'bucket', ['metadataConfiguration']],
      ['GetBucketMetadataConfiguration', 'GET', 'bucket', ['metadataConfiguration']],
      ['DeleteBucketMetadataConfiguration', 'DELETE', 'bucket', ['metadataConfiguration']],
      ['CreateBucketMetadataTableConfiguration', 'POST', 'bucket', ['metadataTable']],
      ['GetBucketMetadataTableConfiguration', 'GET', 'bucket', ['metadataTable']],
      ['DeleteBucketMetadataTableConfiguration', 'DELETE', 'bucket', ['metadataTable']],
      ['UpdateBucketMetadataAnnotationTableConfiguration', 'PUT', 'bucket', ['metadataAnnotationTable']],
      ['UpdateBucketMetadataInventoryTableConfiguration', 'PUT', 'bucket', ['metadataInventoryTable']],
      ['UpdateBucketMetadataJournalTableConfiguration', 'PUT', 'bucket', ['metadataJournalTable']],
    ],
  },
  {
    why: 'objects have no annotations',
    operations: [
      ['PutObjectAnnotation', 'PUT', 'object', ['annotation'], ['annotationName', 'versionId']],
      ['GetObjectAnnotation', 'GET', 'object', ['annotation', 'annotationName'], ['versionId']],
      [
        'ListObjectAnnotations',
        'GET',
        'object',
        ['annotation'],
        ['versionId', 'max-annotation-results', 'annotation-prefix', 'continuation-token'],
      ],
      ['DeleteObjectAnnotation', 'DELETE', 'object', ['annotation'], ['annotationName', 'versionId']],
    ],
  },
  {
    why: 'directory buckets are not supported',
    operations: [
      ['CreateSession', 'GET', 'bucket', ['session']],
      // The parameter x-id alone distinguishes it from ListBuckets.
      [
        'ListDirectoryBuckets',
        'GET',
        'service',
        ['x-id=ListDirectoryBuckets'],
        ['continuation-token', 'max-directory-buckets'],
      ],
      ['RenameObject', 'PUT', 'object', ['renameObject']],
    ],
  },
  {
    why: 'objects cannot be queried',
    operations: [['SelectObjectContent', 'POST', 'object', ['select', 'select-type=2']]],
  },
  { why: 'objects are not available as torrents', operations: [['GetObjectTorrent', 'GET', 'object', ['torrent']]] },
  {
    why: 'object functions are not supported',
    operations: [['WriteGetObjectResponse', 'POST', 'bucket', [], [], 'x-amz-request-route']],
  },
]

export const refusedOperations: readonly AnyOperation[] = refusals.flatMap(({ why, operations }) =>
  operations.map(([name, method, resource, query, params, header]) => {
    const operation: Operation = {
      name,
      source: `https://docs.aws.amazon.com/AmazonS3/latest/API/API_${name}.html`,
      access: 'signed',
      action: 'none',
      ...((method === 'PUT' || method === 'POST') && { needs: { some: 'any' } }),
      on: { method, resource, query, params, header },
      async run() {
        throw new S3Error('NotImplemented', { message: `${name} is not implemented: ${why}.` })
      },
    }
    return operation as AnyOperation
  }),
)
