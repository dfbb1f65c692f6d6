import type { Context, InventoryField, InventoryFields, InventoryValues, StoredObject } from 'dealgate/plugin'

type Grants = ReturnType<Context['acls']['grants']>
type Presence = ReturnType<Context['archive']['presence']>

/** `time`: ms since 1970. */
export type ColumnType = InventoryField['type'] | 'boolean'

/** Null: there is no such value. */
export type Value = string | number | boolean | null

/** The values of an inventory's columns, in their order. */
export type Row = readonly Value[]

/** A version of an object, or a delete marker, with what the columns say about it. */
export interface ListedObject {
  readonly bucket: string
  readonly key: string
  readonly versionId: string
  readonly isLatest: boolean
  /** RFC 3339. */
  readonly lastModified: string
  /** Canonical id of the owner of the object; of the bucket where ACLs are disabled. */
  readonly owner: string
  /** Absent for a delete marker. */
  readonly object?: StoredObject & { readonly presence: Presence }
  /** What grants access to the object; absent unless a column shows it. */
  readonly grants?: Grants
  /** When a lifecycle rule removes it, ms since 1970. */
  readonly expires?: number
  /** Values of the columns of plugins. */
  readonly values: InventoryValues
}

export interface Column {
  /** Name in configurations and manifests. */
  readonly name: string
  readonly type: ColumnType
  readonly required?: true
  /** The action on an object that reads the value elsewhere, beside that of a listing. */
  readonly action?: string
  value(listed: ListedObject): Value | undefined
}

const ALWAYS: readonly Column[] = [
  { name: 'Bucket', type: 'text', required: true, value: ({ bucket }) => bucket },
  { name: 'Key', type: 'text', required: true, value: ({ key }) => key },
]

const OF_VERSIONS: readonly Column[] = [
  { name: 'VersionId', type: 'text', value: ({ versionId }) => versionId },
  { name: 'IsLatest', type: 'boolean', value: ({ isLatest }) => isLatest },
  { name: 'IsDeleteMarker', type: 'boolean', value: ({ object }) => object === undefined },
]

type OfObject = (object: NonNullable<ListedObject['object']>, listed: ListedObject) => Value | undefined

const ofObject = (name: string, type: ColumnType, value: OfObject, action?: string): Column => ({
  name,
  type,
  ...(action !== undefined && { action }),
  value: (listed) => listed.object && value(listed.object, listed),
})

const TAGS = 's3:GetObjectTagging'
const ACL = 's3:GetObjectAcl'
const RETENTION = 's3:GetObjectRetention'
const HOLD = 's3:GetObjectLegalHold'

/** A field of S3 whose feature is not here: its column is empty, as in S3 for objects without it. */
const empty = (name: string): Column => ({ name, type: 'text', value: () => null })

/** Its values are made for this column alone. */
export const GRANTS_FIELD = 'ObjectAccessControlList'

/** In the order of S3's columns. */
const OF_S3: readonly Column[] = [
  ofObject('Size', 'integer', ({ size }) => size),
  { name: 'LastModifiedDate', type: 'time', value: ({ lastModified }) => Date.parse(lastModified) },
  ofObject('ETag', 'text', ({ etag }) => etag),
  ofObject('StorageClass', 'text', ({ presence }) => presence.storageClass),
  ofObject('IsMultipartUploaded', 'boolean', isMultipartUploaded),
  empty('ReplicationStatus'),
  ofObject('EncryptionStatus', 'text', ({ encrypted }) => STATUSES[encrypted?.algorithm ?? 'none']),
  ofObject('ObjectLockRetainUntilDate', 'time', ({ lock }) => lock?.until, RETENTION),
  ofObject('ObjectLockMode', 'text', ({ lock }) => modeOf(lock), RETENTION),
  ofObject('ObjectLockLegalHoldStatus', 'text', ({ lock }) => (lock ? (lock.hold ? 'On' : 'Off') : null), HOLD),
  empty('IntelligentTieringAccessTier'),
  ofObject('BucketKeyStatus', 'text', ({ encrypted }) => {
    if (encrypted?.algorithm !== 'aws:kms') return null
    return encrypted.bucketKey ? 'ENABLED' : 'DISABLED'
  }),
  ofObject('ChecksumAlgorithm', 'text', ({ checksum }) => checksum?.algorithm),
  ofObject(GRANTS_FIELD, 'text', (_, { grants }) => aclText(grants ?? []), ACL),
  ofObject('ObjectOwner', 'text', (_, { owner }) => owner),
  ofObject('LifecycleExpirationDate', 'time', (_, { expires }) => expires),
]

/** Its values are read from the objects, not from their listing. */
export const LABEL_FIELD = 'x-EncryptionLabel'

/** What this server knows beside S3's fields and those of plugins. */
const OWN: readonly (Column & InventoryField)[] = [
  {
    ...{ name: 'x-BytesAt', type: 'text' },
    summary: '`gateway`, or `provider` where only deals have the bytes and a restore must bring them back.',
    value: ({ object }) =>
      object && (object.presence.state === 'cold' || object.presence.state === 'restoring' ? 'provider' : 'gateway'),
  },
  {
    ...{ name: 'x-Tags', type: 'text', action: TAGS },
    summary: 'The tags, as a JSON object.',
    value: ({ object }) =>
      object?.tags?.length
        ? JSON.stringify(Object.fromEntries(object.tags.map(({ key, value }) => [key, value])))
        : null,
  },
  {
    ...{ name: 'x-Encryption', type: 'text' },
    summary: '`AES256`, `SSE-C`, or `aws:kms` with `:` and the name of the key if it is not that of the server.',
    value: ({ object }) => {
      const { algorithm, keyId } = object?.encrypted ?? {}
      return keyId === undefined ? algorithm : `${algorithm}:${keyId}`
    },
  },
  {
    ...{ name: LABEL_FIELD, type: 'text' },
    summary:
      '`kept`, or `lost` for an object whose bytes alone say that it is encrypted; empty for others. Each object without a label is looked at.',
    value: ({ object }) => object?.encrypted && (object.encrypted.unlabelled ? 'lost' : 'kept'),
  },
]

const STATUSES = { AES256: 'SSE-S3', 'aws:kms': 'SSE-KMS', 'SSE-C': 'SSE-C', none: 'NOT-SSE' } as const

/** An ETag with `-1` may also be that of an object of which no MD5 is known. */
function isMultipartUploaded({ uploadId, etag }: StoredObject): boolean {
  return uploadId !== undefined || /^[0-9a-f]{32}-(?!1$)\d+$/.test(etag)
}

function modeOf(lock: StoredObject['lock']): Value {
  if (lock?.mode === undefined) return null
  return lock.mode === 'COMPLIANCE' ? 'Compliance' : 'Governance'
}

/** https://docs.aws.amazon.com/AmazonS3/latest/userguide/objectacl.html */
function aclText(grants: Grants): string {
  const list = { version: '2022-11-10', status: 'AVAILABLE', grants }
  return Buffer.from(JSON.stringify(list)).toString('base64')
}

function columnsOf({ fields, action }: InventoryFields): readonly (Column & InventoryField)[] {
  return fields.map((field) => ({
    ...field,
    ...(action !== undefined && { action }),
    value: ({ values }) => values[field.name],
  }))
}

/** Every column that a configuration can ask for, in their order, with those of plugins at the end. */
function optionalColumns(plugins: readonly InventoryFields[]): readonly Column[] {
  return [...OF_S3, ...plugins.flatMap(columnsOf), ...OWN]
}

/** The fields that S3 does not have, for the documentation. */
export function ownFields(plugins: readonly InventoryFields[]): readonly InventoryField[] {
  return [...plugins.flatMap(columnsOf), ...OWN]
}

/** The fields that a configuration can name. */
export function fieldNames(plugins: readonly InventoryFields[]): readonly string[] {
  return optionalColumns(plugins).map(({ name }) => name)
}

/** The columns of an inventory. A field that no plugin has any more is left out. */
export function columnsFor(
  { versions, fields }: { readonly versions: 'All' | 'Current'; readonly fields: readonly string[] },
  plugins: readonly InventoryFields[],
): readonly Column[] {
  const optional = optionalColumns(plugins).filter(({ name }) => fields.includes(name))
  return [...ALWAYS, ...(versions === 'All' ? OF_VERSIONS : []), ...optional]
}

/** The actions that columns need on each object, beside that of a listing. */
export function actionsOf(columns: readonly Column[]): readonly string[] {
  return [...new Set(columns.flatMap(({ action }) => action ?? []))]
}

/** Name of a column in Parquet: `e_tag` for `ETag`, `x_deal_state` for `x-DealState`. */
export function snakeCase(name: string): string {
  return name
    .replace(/-/g, '_')
    .replace(/([a-z])([A-Z])|([A-Z])(?=[A-Z][a-z])/g, (_, a = '', b = '', c = '') => (c ? `${c}_` : `${a}_${b}`))
    .toLowerCase()
}
