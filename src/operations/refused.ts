import { S3Error } from '../errors/s3-error.js'
import type { Operation } from '../registry/operation.js'
import type { AnyOperation } from '../registry/plugin.js'
import type { Method, Resource } from '../request/s3-request.js'

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
 * Operations of S3 that ask for what no gateway of this kind can do. Any request that no operation answers is refused; these are refused by name, and with the
 * reason. None of them reads its body or changes anything.
 */
const refusals: readonly Refusal[] = [
  {
    why: 'the gateway keeps one version of each object',
    operations: [['PutBucketVersioning', 'PUT', 'bucket', ['versioning']]],
  },
  {
    why: 'the gateway has no keys to encrypt with',
    operations: [
      ['PutBucketEncryption', 'PUT', 'bucket', ['encryption']],
      ['UpdateObjectEncryption', 'PUT', 'object', ['encryption'], ['versionId']],
    ],
  },
  {
    why: 'the gateway cannot keep anybody from deleting or overwriting an object',
    operations: [
      ['PutObjectLockConfiguration', 'PUT', 'bucket', ['object-lock']],
      ['PutObjectRetention', 'PUT', 'object', ['retention'], ['versionId']],
      ['PutObjectLegalHold', 'PUT', 'object', ['legal-hold'], ['versionId']],
    ],
  },
  { why: 'buckets are not served as web sites', operations: [['PutBucketWebsite', 'PUT', 'bucket', ['website']]] },
  { why: 'buckets are not replicated', operations: [['PutBucketReplication', 'PUT', 'bucket', ['replication']]] },
  {
    why: 'there is no accelerated endpoint',
    operations: [['PutBucketAccelerateConfiguration', 'PUT', 'bucket', ['accelerate']]],
  },
  {
    why: 'object ownership is always BucketOwnerEnforced, without which ACLs would count',
    operations: [['DeleteBucketOwnershipControls', 'DELETE', 'bucket', ['ownershipControls']]],
  },
  { why: 'there are no rights by tags', operations: [['PutBucketAbac', 'PUT', 'bucket', ['abac']]] },
  {
    why: 'access to buckets is not analysed',
    operations: [
      ['PutBucketAnalyticsConfiguration', 'PUT', 'bucket', ['analytics'], ['id']],
      ['PutBucketMetricsConfiguration', 'PUT', 'bucket', ['metrics'], ['id']],
    ],
  },
  {
    why: 'no inventories are made of buckets',
    operations: [['PutBucketInventoryConfiguration', 'PUT', 'bucket', ['inventory'], ['id']]],
  },
  {
    why: 'objects are not moved between storage classes',
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
    why: 'directory buckets are another kind of store',
    operations: [
      ['CreateSession', 'GET', 'bucket', ['session']],
      // Without sub-resource: nothing but x-id tells it from ListBuckets.
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
    why: 'objects are not searched',
    operations: [['SelectObjectContent', 'POST', 'object', ['select', 'select-type=2']]],
  },
  { why: 'there are no torrents of objects', operations: [['GetObjectTorrent', 'GET', 'object', ['torrent']]] },
  {
    why: 'no functions answer for objects',
    operations: [['WriteGetObjectResponse', 'POST', 'bucket', [], [], 'x-amz-request-route']],
  },
]

/** What is refused, by name: why, in words that follow "it is not implemented:". */
export const refusalReasons: ReadonlyMap<string, string> = new Map(
  refusals.flatMap(({ why, operations }) => operations.map(([name]) => [name, why])),
)

export const refusedOperations: readonly AnyOperation[] = refusals.flatMap(({ why, operations }) =>
  operations.map(([name, method, resource, query, params, header]) => {
    const operation: Operation = {
      name,
      source: `https://docs.aws.amazon.com/AmazonS3/latest/API/API_${name}.html`,
      on: { method, resource, query, params, header },
      async run() {
        throw new S3Error('NotImplemented', { message: `${name} is not implemented: ${why}.` })
      },
    }
    return operation as AnyOperation
  }),
)
