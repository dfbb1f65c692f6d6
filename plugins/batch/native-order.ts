import { checksums, headerOf, S3Error, z } from 'dealgate/plugin'
import { FIELDS } from './manifest.js'
import {
  type BatchOperation,
  type BatchOrder,
  type FilterSource,
  MANIFEST_FORMATS,
  type ManifestSource,
  type OperationName,
  type TagPair,
} from './order.js'

export const OPERATIONS = [
  ...(['Delete', 'Copy', 'Tag', 'Untag', 'Acl', 'Restore', 'Archive'] as const),
  ...(['Deal', 'Renew', 'Retain', 'LegalHold', 'Checksum', 'Encrypt', 'Rewrap'] as const),
] as const satisfies readonly OperationName[]

const bucket = z.string().min(3).max(255)
const texts = z.array(z.string().min(1).max(1024)).max(100)
const time = z.iso.datetime({ offset: true })
const pair = z.strictObject({ Key: z.string().min(1).max(128), Value: z.string().max(256) })
const pairs = z.array(pair).max(50).meta({ element: 'Tag' })
const list = (description: string, element: string) => texts.optional().meta({ element }).describe(description)

const copy = z.strictObject({
  TargetBucket: bucket,
  TargetPrefix: z.string().max(1024).optional().describe('Comes before each key.'),
  StorageClass: z.string().max(64).optional(),
  CannedAcl: z.string().max(64).optional(),
  Tags: pairs
    .optional()
    .describe('Replace the tags of the source; an empty list drops them. Default: they are copied.'),
  Metadata: z
    .record(z.string().min(1).max(128), z.string().max(2048))
    .optional()
    .describe('Replaces the metadata of the source. Default: it is copied.'),
  ContentType: z.string().max(256).optional().describe('With Metadata.'),
  CacheControl: z.string().max(256).optional().describe('With Metadata.'),
  ServerSideEncryption: z.enum(['AES256']).optional(),
})

const terms = z.strictObject({
  MinerId: z.string().max(64).optional(),
  Price: z.string().max(64).optional().describe('Decimal, as text: fil per epoch for the whole piece.'),
  DurationEpochs: z.int().min(1).optional(),
  VerifiedDeal: z.boolean().optional(),
  FastRetrieval: z.boolean().optional(),
  ConfirmPrice: z.boolean().optional(),
})

const manifest = z.strictObject({
  Format: z.enum(MANIFEST_FORMATS),
  Fields: z
    .array(z.enum(FIELDS as [string, ...string[]]))
    .optional()
    .meta({ element: 'Field' })
    .describe('The columns of a CSV manifest, in their order; default Bucket, Key.'),
  Bucket: bucket,
  Key: z.string().min(1).max(1024),
  VersionId: z.string().max(1024).optional(),
  ETag: z.string().max(200).optional().describe('The job fails if the manifest has another one.'),
})

const filter = z.strictObject({
  Bucket: bucket,
  Prefixes: list('Keys begin with any of them.', 'Prefix'),
  Suffixes: list('Keys end with any of them.', 'Suffix'),
  Substrings: list('Keys hold any of them.', 'Substring'),
  CreatedAfter: time.optional(),
  CreatedBefore: time.optional(),
  OlderThanDays: z.int().min(0).max(36_500).optional(),
  NewerThanDays: z.int().min(0).max(36_500).optional(),
  SizeGreaterThan: z.int().min(0).optional().describe('Bytes.'),
  SizeLessThan: z.int().min(0).optional().describe('Bytes.'),
  StorageClasses: list('Any of them.', 'StorageClass'),
  Tags: z
    .array(z.strictObject({ Key: z.string().min(1).max(128), Value: z.string().max(256).optional() }))
    .max(10)
    .optional()
    .meta({ element: 'Tag' })
    .describe('All of them; a tag without a value has any.'),
  DealStates: list(
    'Any state of the newest deal, such as StorageDealActive; None for objects without a deal.',
    'DealState',
  ),
  DealEndsBefore: time.optional().describe('The deal that the metadata of the object names ends before this time.'),
  DealEndsWithinDays: z.int().min(0).max(36_500).optional(),
  Versions: z.enum(['Current', 'Noncurrent', 'All']).optional().describe('Default Current. Others name version ids.'),
})

export const orderSchema = z.strictObject({
  Operation: z.enum(OPERATIONS),
  Delete: z.strictObject({ BypassGovernance: z.boolean().optional() }).optional(),
  Copy: copy.optional(),
  Tag: z
    .strictObject({
      Tags: pairs,
      Replace: z.boolean().optional().describe('Replaces all tags of the object. Default: other tags stay.'),
    })
    .optional(),
  Untag: z.strictObject({ TagKeys: list('Default: all tags.', 'TagKey') }).optional(),
  Acl: z.strictObject({ CannedAcl: z.string().min(1).max(64) }).optional(),
  Restore: z
    .strictObject({
      Days: z.int().min(1).optional().describe('Default: for good.'),
      Tier: z.enum(['Standard', 'Bulk', 'Expedited']).optional(),
    })
    .optional(),
  Archive: z.strictObject({ StorageClass: z.string().min(1).max(64) }).optional(),
  Deal: terms.optional().describe('Default: the terms of the object, its bucket or the server.'),
  Renew: terms.optional().describe('Terms that are other than those of the newest deal.'),
  Retain: z
    .strictObject({
      Mode: z.enum(['GOVERNANCE', 'COMPLIANCE']),
      RetainUntilDate: time,
      BypassGovernance: z.boolean().optional(),
    })
    .optional(),
  LegalHold: z.strictObject({ Status: z.enum(['ON', 'OFF']) }).optional(),
  Checksum: z
    .strictObject({ Algorithm: z.enum(checksums.algorithms).optional().describe('Computed for the report, too.') })
    .optional(),
  Manifest: manifest.optional(),
  Filter: filter.optional(),
  Report: z
    .strictObject({
      Bucket: bucket,
      Prefix: z.string().max(512).optional(),
      Scope: z.enum(['AllTasks', 'FailedTasksOnly']).optional().describe('Default AllTasks.'),
    })
    .optional()
    .describe('Default: no report.'),
  Description: z.string().max(256).optional(),
  Priority: z.int().min(0).max(2_147_483_647).optional().describe('Higher ones come first. Default 0.'),
  Tags: pairs.optional().describe('Of the job.'),
  ConfirmationRequired: z.boolean().optional().describe('The job waits for RunBatchJob once its objects are listed.'),
  DryRun: z.boolean().optional().describe('Counts the objects, their bytes and the price; changes nothing.'),
  RequestsPerSecond: z.int().min(1).max(100_000).optional().describe('Default: the bound of the server.'),
})

type NativeOrder = z.output<typeof orderSchema>

/** @param now ms since 1970. Throws InvalidArgument. */
export function readOrder(asked: NativeOrder, now: number): Omit<BatchOrder, 'client'> {
  const { Manifest, Filter, Report } = asked
  if ((Manifest === undefined) === (Filter === undefined))
    throw wrong('Manifest', 'State the objects by a Manifest or a Filter, and not by both.')
  const stray = OPERATIONS.find((name) => name !== asked.Operation && parametersOf(asked, name) !== undefined)
  if (stray) throw wrong(stray, `The operation is ${asked.Operation}: leave out ${stray}.`)
  return {
    operation: operationOf(asked),
    ...(Manifest && { manifest: manifestOf(Manifest) }),
    ...(Filter && { filter: filterOf(Filter, now) }),
    ...(Report && {
      report: {
        ...{ bucket: Report.Bucket, prefix: (Report.Prefix ?? '').replace(/\/$/, '') },
        scope: Report.Scope ?? 'AllTasks',
      },
    }),
    description: asked.Description ?? '',
    priority: asked.Priority ?? 0,
    tags: tagPairs(asked.Tags ?? []),
    confirmationRequired: asked.ConfirmationRequired ?? false,
    dryRun: asked.DryRun ?? false,
    ...(asked.RequestsPerSecond !== undefined && { rate: asked.RequestsPerSecond }),
  }
}

function parametersOf(asked: NativeOrder, name: OperationName): unknown {
  return name === 'Encrypt' || name === 'Rewrap' ? undefined : asked[name]
}

function operationOf(asked: NativeOrder): BatchOperation {
  const needs = <T>(value: T | undefined): T => {
    if (value !== undefined) return value
    throw wrong(asked.Operation, `The operation needs its parameters: the member ${asked.Operation}.`)
  }
  switch (asked.Operation) {
    case 'Delete':
      return { name: 'Delete', bypassGovernance: asked.Delete?.BypassGovernance ?? false }
    case 'Copy':
      return copyOf(needs(asked.Copy))
    case 'Tag': {
      const { Tags, Replace = false } = needs(asked.Tag)
      return { name: 'Tag', tags: tagPairs(Tags), replace: Replace }
    }
    case 'Untag':
      return { name: 'Untag', ...(asked.Untag?.TagKeys && { keys: asked.Untag.TagKeys }) }
    case 'Acl':
      return { name: 'Acl', headers: { 'x-amz-acl': needs(asked.Acl).CannedAcl } }
    case 'Restore': {
      const { Days: days, Tier: tier } = asked.Restore ?? {}
      return { name: 'Restore', ...(days !== undefined && { days }), ...(tier && { tier }) }
    }
    case 'Archive':
      return { name: 'Archive', storageClass: needs(asked.Archive).StorageClass }
    case 'Deal':
    case 'Renew':
      return { name: asked.Operation, terms: stated(asked[asked.Operation] ?? {}) }
    case 'Retain': {
      const { Mode: mode, RetainUntilDate: until, BypassGovernance: bypassGovernance = false } = needs(asked.Retain)
      return { name: 'Retain', mode, until, bypassGovernance }
    }
    case 'LegalHold':
      return { name: 'LegalHold', status: needs(asked.LegalHold).Status }
    case 'Checksum':
      return { name: 'Checksum', ...(asked.Checksum?.Algorithm && { algorithm: asked.Checksum.Algorithm }) }
    case 'Encrypt':
    case 'Rewrap':
      return { name: asked.Operation }
  }
}

function copyOf(asked: z.output<typeof copy>): BatchOperation {
  const { TargetBucket, TargetPrefix = '', Tags, Metadata, ContentType, CacheControl } = asked
  if (!Metadata && (ContentType ?? CacheControl) !== undefined)
    throw wrong('Metadata', 'ContentType and CacheControl replace metadata: state Metadata, too.')
  return {
    ...{ name: 'Copy', targetBucket: TargetBucket, targetPrefix: TargetPrefix },
    headers: copyHeaders({
      ...{ storageClass: asked.StorageClass, acl: asked.CannedAcl, encryption: asked.ServerSideEncryption },
      ...(Tags && { tags: tagPairs(Tags) }),
      ...(Metadata && {
        metadata: Object.entries(Metadata),
        headers: { 'content-type': ContentType, 'cache-control': CacheControl },
      }),
    }),
  }
}

interface CopyFacts {
  readonly storageClass?: string | undefined
  readonly acl?: string | undefined
  readonly encryption?: string | undefined
  readonly tags?: readonly TagPair[] | undefined
  readonly metadata?: readonly (readonly [name: string, value: string])[] | undefined
  /** With metadata. */
  readonly headers?: Readonly<Record<string, string | undefined>> | undefined
}

/** The headers of CopyObject. Throws InvalidArgument for what no header can hold. */
export function copyHeaders(facts: CopyFacts): Record<string, string> {
  const { storageClass, acl, encryption, tags, metadata, headers = {} } = facts
  const query = tags?.map(({ key, value }) => `${encodeURIComponent(key)}=${encodeURIComponent(value)}`).join('&')
  const all: Record<string, string | undefined> = {
    'x-amz-storage-class': storageClass,
    'x-amz-acl': acl,
    'x-amz-server-side-encryption': encryption,
    ...(query !== undefined && { 'x-amz-tagging-directive': 'REPLACE', 'x-amz-tagging': query || undefined }),
    ...(metadata && { 'x-amz-metadata-directive': 'REPLACE', ...headers }),
    ...Object.fromEntries((metadata ?? []).map(([name, value]) => [`x-amz-meta-${name.toLowerCase()}`, value])),
  }
  return Object.fromEntries(
    // The headers have the form in which they arrive in a request.
    Object.entries(all).flatMap(([name, value]) =>
      value === undefined ? [] : [[name, headerOf('header', name, value)]],
    ),
  )
}

export function tagPairs(tags: readonly z.output<typeof pair>[]): TagPair[] {
  return tags.map(({ Key, Value }) => ({ key: Key, value: Value }))
}

function stated(given: z.output<typeof terms>): Record<string, string | number | boolean> {
  return Object.fromEntries(
    Object.entries(given).flatMap(([name, value]) => (value === undefined ? [] : [[name, value]])),
  )
}

function manifestOf(asked: z.output<typeof manifest>): ManifestSource {
  const { Format, Fields, Bucket, Key, VersionId, ETag } = asked
  return {
    ...{ format: Format, fields: checkedFields(Fields ?? ['Bucket', 'Key']), bucket: Bucket, key: Key },
    ...(VersionId !== undefined && { versionId: VersionId }),
    ...(ETag !== undefined && { etag: ETag.replaceAll('"', '') }),
  }
}

/** Throws InvalidArgument unless the columns name a bucket and a key, each once. */
export function checkedFields(fields: readonly string[]): readonly string[] {
  const count = (name: string) => fields.filter((field) => field === name).length
  if (count('Bucket') !== 1 || count('Key') !== 1 || count('VersionId') > 1)
    throw wrong('Fields', 'The columns of a manifest are Bucket and Key, and VersionId or Ignore besides.')
  return fields
}

const DAY_MS = 86_400_000

function filterOf(asked: z.output<typeof filter>, now: number): FilterSource {
  const ago = (days: number | undefined) => (days === undefined ? undefined : now - days * DAY_MS)
  const at = (text: string | undefined) => (text === undefined ? undefined : Date.parse(text))
  const within = asked.DealEndsWithinDays
  const latest = (...times: readonly (number | undefined)[]) => times.filter((one) => one !== undefined)
  const after = latest(at(asked.CreatedAfter), ago(asked.NewerThanDays))
  const before = latest(at(asked.CreatedBefore), ago(asked.OlderThanDays))
  const ends = latest(at(asked.DealEndsBefore), within === undefined ? undefined : now + within * DAY_MS)
  return {
    bucket: asked.Bucket,
    ...{ prefixes: asked.Prefixes ?? [], suffixes: asked.Suffixes ?? [], substrings: asked.Substrings ?? [] },
    ...(after.length > 0 && { createdAfter: Math.max(...after) }),
    ...(before.length > 0 && { createdBefore: Math.min(...before) }),
    ...(asked.SizeGreaterThan !== undefined && { sizeGreaterThan: asked.SizeGreaterThan }),
    ...(asked.SizeLessThan !== undefined && { sizeLessThan: asked.SizeLessThan }),
    storageClasses: asked.StorageClasses ?? [],
    tags: (asked.Tags ?? []).map(({ Key, Value }) => ({ key: Key, ...(Value !== undefined && { value: Value }) })),
    dealStates: asked.DealStates ?? [],
    ...(ends.length > 0 && { dealEndsBefore: Math.min(...ends) }),
    versions: asked.Versions ?? 'Current',
  }
}

function wrong(name: string, message: string): S3Error {
  return new S3Error('InvalidArgument', { message, fields: { ArgumentName: name } })
}
