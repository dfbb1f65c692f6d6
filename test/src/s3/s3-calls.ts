import * as S3 from '@aws-sdk/client-s3'
import { publicRead } from '../../support/content/policies.js'
import type { Mode } from '../../support/server/modes.js'

/** Where a request goes: all of it exists on the one target, and none of it but the bucket on the other. */
export interface Target {
  readonly bucket: string
  readonly key: string
  readonly uploadId: string
  /** ETag of the part that was uploaded. */
  readonly partEtag: string
}

interface Call {
  readonly input: (target: Target) => object
  /** Error code of S3 where nothing of the kind was ever set; absent: success. */
  readonly answers?: string
  /** The code in place of it on a gateway that has neither versions nor locks. */
  readonly legacy?: string
}

const at = ({ bucket }: Target) => ({ Bucket: bucket })
const of = ({ bucket, key }: Target) => ({ Bucket: bucket, Key: key })
const onBucket = (more: object = {}): Call => ({ input: (target) => ({ ...at(target), ...more }) })
const onObject = (more: object = {}): Call => ({ input: (target) => ({ ...of(target), ...more }) })
const refusedWith = (answers: string, call: Call = onBucket()): Call => ({ ...call, answers })
const withoutVersions = (call: Call, answers?: string): Call => ({
  ...call,
  ...(answers !== undefined && { answers }),
  legacy: 'NotImplemented',
})
const retainUntil = new Date('2040-01-01')
const destination = { Bucket: 'arn:aws:s3:::elsewhere' }

/**
 * A plausible request for every operation of S3, by name, in an order in which all of them can succeed: what one sets
 * the next reads and another removes, and the bucket goes last.
 */
export const calls: Readonly<Record<string, Call>> = {
  ListBuckets: { input: () => ({}) },
  ListDirectoryBuckets: { input: () => ({}) },
  CreateBucket: { input: ({ bucket }) => ({ Bucket: `${bucket}-new` }) },
  HeadBucket: onBucket(),
  GetBucketLocation: onBucket(),

  PutBucketAbac: onBucket({ AbacStatus: { Status: 'Enabled' } }),
  GetBucketAbac: onBucket(),
  PutBucketAccelerateConfiguration: onBucket({ AccelerateConfiguration: { Status: 'Enabled' } }),
  GetBucketAccelerateConfiguration: onBucket(),
  PutBucketAcl: onBucket({ ACL: 'private' }),
  GetBucketAcl: onBucket(),
  PutBucketAnalyticsConfiguration: onBucket({
    Id: 'one',
    AnalyticsConfiguration: { Id: 'one', StorageClassAnalysis: {} },
  }),
  GetBucketAnalyticsConfiguration: refusedWith('NoSuchConfiguration', onBucket({ Id: 'one' })),
  ListBucketAnalyticsConfigurations: onBucket(),
  DeleteBucketAnalyticsConfiguration: refusedWith('NoSuchConfiguration', onBucket({ Id: 'one' })),
  PutBucketCors: onBucket({
    CORSConfiguration: { CORSRules: [{ AllowedMethods: ['GET'], AllowedOrigins: ['https://example.com'] }] },
  }),
  GetBucketCors: onBucket(),
  DeleteBucketCors: onBucket(),
  PutBucketEncryption: onBucket({
    ServerSideEncryptionConfiguration: { Rules: [{ ApplyServerSideEncryptionByDefault: { SSEAlgorithm: 'AES256' } }] },
  }),
  GetBucketEncryption: onBucket(),
  DeleteBucketEncryption: onBucket(),
  PutBucketIntelligentTieringConfiguration: onBucket({
    Id: 'one',
    IntelligentTieringConfiguration: {
      Id: 'one',
      Status: 'Enabled',
      Tierings: [{ Days: 90, AccessTier: 'ARCHIVE_ACCESS' }],
    },
  }),
  GetBucketIntelligentTieringConfiguration: refusedWith('NoSuchConfiguration', onBucket({ Id: 'one' })),
  ListBucketIntelligentTieringConfigurations: onBucket(),
  DeleteBucketIntelligentTieringConfiguration: refusedWith('NoSuchConfiguration', onBucket({ Id: 'one' })),
  PutBucketInventoryConfiguration: {
    input: ({ bucket }) => ({
      Bucket: bucket,
      Id: 'one',
      InventoryConfiguration: {
        Id: 'one',
        IsEnabled: false,
        IncludedObjectVersions: 'Current',
        Schedule: { Frequency: 'Daily' },
        Destination: { S3BucketDestination: { Bucket: `arn:aws:s3:::${bucket}`, Format: 'CSV' } },
      },
    }),
  },
  GetBucketInventoryConfiguration: onBucket({ Id: 'one' }),
  ListBucketInventoryConfigurations: onBucket(),
  DeleteBucketInventoryConfiguration: onBucket({ Id: 'one' }),
  PutBucketLifecycleConfiguration: onBucket({
    LifecycleConfiguration: {
      Rules: [{ ID: 'one', Status: 'Enabled', Filter: { Prefix: 'never/' }, Expiration: { Days: 3650 } }],
    },
  }),
  GetBucketLifecycleConfiguration: onBucket(),
  DeleteBucketLifecycle: onBucket(),
  PutBucketLogging: onBucket({ BucketLoggingStatus: {} }),
  GetBucketLogging: onBucket(),
  CreateBucketMetadataConfiguration: onBucket({
    MetadataConfiguration: { JournalTableConfiguration: { RecordExpiration: { Expiration: 'DISABLED' } } },
  }),
  GetBucketMetadataConfiguration: onBucket(),
  UpdateBucketMetadataAnnotationTableConfiguration: onBucket({ AnnotationTableConfiguration: {} }),
  UpdateBucketMetadataInventoryTableConfiguration: onBucket({
    InventoryTableConfiguration: { ConfigurationState: 'ENABLED' },
  }),
  UpdateBucketMetadataJournalTableConfiguration: onBucket({
    JournalTableConfiguration: { RecordExpiration: { Expiration: 'DISABLED' } },
  }),
  DeleteBucketMetadataConfiguration: onBucket(),
  CreateBucketMetadataTableConfiguration: onBucket({
    MetadataTableConfiguration: {
      S3TablesDestination: { TableBucketArn: 'arn:aws:s3tables:us-east-1:1:bucket/b', TableName: 't' },
    },
  }),
  GetBucketMetadataTableConfiguration: onBucket(),
  DeleteBucketMetadataTableConfiguration: onBucket(),
  PutBucketMetricsConfiguration: onBucket({ Id: 'one', MetricsConfiguration: { Id: 'one' } }),
  GetBucketMetricsConfiguration: refusedWith('NoSuchConfiguration', onBucket({ Id: 'one' })),
  ListBucketMetricsConfigurations: onBucket(),
  DeleteBucketMetricsConfiguration: refusedWith('NoSuchConfiguration', onBucket({ Id: 'one' })),
  PutBucketNotificationConfiguration: onBucket({ NotificationConfiguration: {} }),
  GetBucketNotificationConfiguration: onBucket(),
  PutObjectLockConfiguration: withoutVersions(
    onBucket({
      ObjectLockConfiguration: {
        ObjectLockEnabled: 'Enabled',
        Rule: { DefaultRetention: { Mode: 'COMPLIANCE', Days: 1 } },
      },
    }),
    'InvalidBucketState',
  ),
  GetObjectLockConfiguration: refusedWith('ObjectLockConfigurationNotFoundError'),
  PutBucketOwnershipControls: onBucket({ OwnershipControls: { Rules: [{ ObjectOwnership: 'BucketOwnerEnforced' }] } }),
  GetBucketOwnershipControls: onBucket(),
  DeleteBucketOwnershipControls: onBucket(),
  PutBucketPolicy: { input: (target) => ({ ...at(target), Policy: publicRead(target.bucket) }) },
  GetBucketPolicy: onBucket(),
  GetBucketPolicyStatus: onBucket(),
  DeleteBucketPolicy: onBucket(),
  PutPublicAccessBlock: onBucket({ PublicAccessBlockConfiguration: { BlockPublicPolicy: true } }),
  GetPublicAccessBlock: onBucket(),
  DeletePublicAccessBlock: onBucket(),
  PutBucketReplication: onBucket({
    ReplicationConfiguration: {
      Role: 'arn:aws:iam::1:role/r',
      Rules: [{ Status: 'Enabled', Prefix: '', Destination: destination }],
    },
  }),
  GetBucketReplication: refusedWith('ReplicationConfigurationNotFoundError'),
  DeleteBucketReplication: onBucket(),
  PutBucketRequestPayment: onBucket({ RequestPaymentConfiguration: { Payer: 'BucketOwner' } }),
  GetBucketRequestPayment: onBucket(),
  PutBucketTagging: onBucket({ Tagging: { TagSet: [{ Key: 'team', Value: 'red' }] } }),
  GetBucketTagging: onBucket(),
  DeleteBucketTagging: onBucket(),
  PutBucketVersioning: withoutVersions(onBucket({ VersioningConfiguration: { Status: 'Enabled' } })),
  GetBucketVersioning: onBucket(),
  PutBucketWebsite: onBucket({ WebsiteConfiguration: { IndexDocument: { Suffix: 'index.html' } } }),
  GetBucketWebsite: onBucket(),
  DeleteBucketWebsite: onBucket(),
  CreateSession: onBucket(),

  PutObject: onObject({ Body: 'new content', Metadata: { colour: 'red' } }),
  GetObject: onObject(),
  HeadObject: onObject(),
  GetObjectAttributes: onObject({ ObjectAttributes: ['ETag', 'ObjectSize'] }),
  ListObjects: onBucket(),
  ListObjectsV2: onBucket(),
  ListObjectVersions: onBucket(),
  PutObjectAcl: onObject({ ACL: 'private' }),
  GetObjectAcl: onObject(),
  PutObjectAnnotation: onObject({ AnnotationName: 'note', AnnotationPayload: 'a note' }),
  GetObjectAnnotation: onObject({ AnnotationName: 'note' }),
  ListObjectAnnotations: onObject(),
  DeleteObjectAnnotation: onObject({ AnnotationName: 'note' }),
  PutObjectLegalHold: withoutVersions(onObject({ LegalHold: { Status: 'ON' } }), 'InvalidRequest'),
  GetObjectLegalHold: refusedWith('InvalidRequest', onObject()),
  PutObjectRetention: withoutVersions(
    onObject({ Retention: { Mode: 'GOVERNANCE', RetainUntilDate: retainUntil } }),
    'InvalidRequest',
  ),
  GetObjectRetention: refusedWith('InvalidRequest', onObject()),
  PutObjectTagging: onObject({ Tagging: { TagSet: [{ Key: 'team', Value: 'blue' }] } }),
  GetObjectTagging: onObject(),
  DeleteObjectTagging: onObject(),
  GetObjectTorrent: onObject(),
  UpdateObjectEncryption: onObject({
    ObjectEncryption: {
      SSEKMS: { KMSKeyArn: 'arn:aws:kms:us-east-1:111122223333:key/00000000-0000-0000-0000-000000000000' },
    },
  }),
  RestoreObject: refusedWith('InvalidObjectState', onObject({ RestoreRequest: { Days: 1 } })),
  SelectObjectContent: onObject({
    Expression: 'SELECT * FROM S3Object',
    ExpressionType: 'SQL',
    InputSerialization: { CSV: {} },
    OutputSerialization: { CSV: {} },
  }),
  WriteGetObjectResponse: {
    input: () => ({ RequestRoute: 'route', RequestToken: 'token', StatusCode: 200, Body: 'content' }),
  },
  RenameObject: {
    input: (target) => ({ ...of(target), Key: 'renamed', RenameSource: `/${target.bucket}/${target.key}` }),
  },
  CopyObject: { input: (target) => ({ ...of(target), Key: 'copy', CopySource: `${target.bucket}/${target.key}` }) },

  CreateMultipartUpload: onObject(),
  UploadPart: { input: (target) => ({ ...of(target), UploadId: target.uploadId, PartNumber: 2, Body: 'a part' }) },
  UploadPartCopy: {
    input: (target) => ({
      ...of(target),
      UploadId: target.uploadId,
      PartNumber: 3,
      CopySource: `${target.bucket}/${target.key}`,
    }),
  },
  ListParts: { input: (target) => ({ ...of(target), UploadId: target.uploadId }) },
  ListMultipartUploads: onBucket(),
  CompleteMultipartUpload: {
    input: (target) => ({
      ...of(target),
      UploadId: target.uploadId,
      MultipartUpload: { Parts: [{ PartNumber: 1, ETag: target.partEtag }] },
    }),
  },
  AbortMultipartUpload: { input: (target) => ({ ...of(target), UploadId: target.uploadId }), answers: 'NoSuchUpload' },

  DeleteObjects: onBucket({ Delete: { Objects: [{ Key: 'copy' }] } }),
  DeleteObject: onObject(),
  DeleteBucket: { input: ({ bucket }) => ({ Bucket: `${bucket}-new` }) },
}

type CommandClass = new (
  input: object,
) => {
  readonly schema: Schema
} & Parameters<S3.S3Client['send']>[0]

/** An operation's schema in the form that the SDK generates: kind, namespace, name, traits, input, output. */
type Schema = readonly [number, string, string, object, () => StructureSchema, unknown]
/** Kind, namespace, name, traits, names of the members, and the type of each, with its traits. */
type StructureSchema = readonly [number, string, string, unknown, readonly string[], readonly unknown[]]

/** Every operation of S3 that the SDK knows, by name. */
export const commands: ReadonlyMap<string, CommandClass> = new Map(
  Object.entries(S3).flatMap(([name, value]) => {
    const operation = /^([A-Z]\w+)Command$/.exec(name)?.[1]
    return operation === undefined ? [] : [[operation, value as unknown as CommandClass]]
  }),
)

/** The code of the answer to a call; undefined for success. */
export function answerOf(name: string, mode: Mode): string | undefined {
  const { answers, legacy } = calls[name] ?? {}
  return mode === 'legacy' && legacy !== undefined ? legacy : answers
}

export function command(name: string, target: Target): InstanceType<CommandClass> {
  const Command = commands.get(name)
  const call = calls[name]
  if (!Command || !call) throw new Error(`there is no call of ${name}`)
  return new Command(call.input(target))
}

/** Names of the request headers that S3's model gives an operation, lower-case; `x-amz-meta-*` is not among them. */
export function modelledHeaders(name: string): string[] {
  const Command = commands.get(name)
  if (!Command) throw new Error(`S3 has no ${name}`)
  const [, , , , , members]: StructureSchema = new Command({}).schema[4]()
  return members.flatMap((member) => {
    const traits: unknown = Array.isArray(member) ? member[1] : undefined
    const header =
      typeof traits === 'object' && traits !== null && 'httpHeader' in traits ? traits.httpHeader : undefined
    return typeof header === 'string' ? [header.toLowerCase()] : []
  })
}
