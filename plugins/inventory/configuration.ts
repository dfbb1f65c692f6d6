import { type Context, S3Error, type ServerKey, xml } from 'dealgate/plugin'

declare module 'dealgate/plugin' {
  interface SettingTypes {
    /** In the order of their ids. */
    inventory: readonly InventoryConfiguration[]
  }
}

/** https://docs.aws.amazon.com/AmazonS3/latest/API/API_InventoryConfiguration.html */
export interface InventoryConfiguration {
  readonly id: string
  readonly enabled: boolean
  readonly destination: InventoryDestination
  /** Prefix of the keys that are listed. */
  readonly filter?: string
  readonly versions: 'All' | 'Current'
  readonly fields: readonly string[]
  readonly frequency: 'Daily' | 'Weekly'
  /** Access key id of the identity that set it, with whose rights it is written. */
  readonly by: string
  /** When it was set, ms since 1970. */
  readonly since: number
}

interface InventoryDestination {
  readonly bucket: string
  readonly format: InventoryFormat
  /** Canonical id of the account that must own the bucket; absent for any. */
  readonly accountId?: string
  /** Without `/` at its end. */
  readonly prefix?: string
  /** Absent: the default of the bucket. */
  readonly encryption?: ServerKey
}

const INVENTORY_FORMATS = ['CSV', 'Parquet'] as const
export type InventoryFormat = (typeof INVENTORY_FORMATS)[number]

/** What the sender does not state. */
type RequestedConfiguration = Omit<InventoryConfiguration, 'by' | 'since'>

const ROOT = 'InventoryConfiguration'

/** The name that S3 gives its own key of aws:kms. */
const OWN_KEY = 'aws/s3'
const DESTINATION = 'S3BucketDestination'
const ARN = 'arn:aws:s3:::'
const MAX_PREFIX_BYTES = 512

/**
 * @param id as the query names it
 * @param fields names of the fields that this server offers
 * @throws S3Error MalformedXML, InvalidArgument
 */
export async function readConfiguration(
  bytes: Buffer,
  id: string,
  fields: readonly string[],
): Promise<RequestedConfiguration> {
  const root = await xml.parse(bytes, ROOT)
  xml.requireChildren(root, ROOT, {
    once: ['Destination', 'IsEnabled', 'Filter', 'Id', 'IncludedObjectVersions', 'OptionalFields', 'Schedule'],
  })
  requireId(xml.requireText(root, ROOT, 'Id'), id)
  const filter = readFilter(root)
  return {
    id,
    enabled: oneOf(xml.requireText(root, ROOT, 'IsEnabled').trim(), 'IsEnabled', ['true', 'false']) === 'true',
    destination: readDestination(only(only(root, ROOT, 'Destination'), 'Destination', DESTINATION)),
    ...(filter !== undefined && { filter }),
    versions: oneOf(xml.requireText(root, ROOT, 'IncludedObjectVersions'), 'IncludedObjectVersions', [
      'All',
      'Current',
    ]),
    fields: readFields(root, fields),
    frequency: oneOf(xml.requireText(only(root, ROOT, 'Schedule'), 'Schedule', 'Frequency'), 'Frequency', [
      'Daily',
      'Weekly',
    ]),
  }
}

function requireId(stated: string, id: string): void {
  if (!/^[A-Za-z0-9._-]{1,64}$/.test(id))
    throw invalid('id', 'The id of an inventory has 1 to 64 letters, digits and . - _', id)
  if (stated !== id) throw invalid('Id', 'The Id in the document is not the id in the query.', stated)
}

function readFilter(root: xml.Node): string | undefined {
  const filter = root.children.get('Filter')?.[0]
  if (!filter) return undefined
  xml.requireChildren(filter, 'Filter', { once: ['Prefix'] })
  const prefix = xml.text(filter, 'Prefix') ?? ''
  if (Buffer.byteLength(prefix) > 1024) throw invalid('Prefix', 'The prefix of the filter has more than 1024 bytes.')
  return prefix
}

function readDestination(node: xml.Node): InventoryDestination {
  xml.requireChildren(node, DESTINATION, { once: ['AccountId', 'Bucket', 'Format', 'Prefix', 'Encryption'] })
  const arn = xml.requireText(node, DESTINATION, 'Bucket')
  const bucket = arn.slice(ARN.length)
  if (!arn.startsWith(ARN) || !/^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$/.test(bucket))
    throw invalid('Bucket', `The bucket of the destination is an ARN: ${ARN}bucket.`, arn)
  const accountId = xml.text(node, 'AccountId')
  const prefix = readPrefix(xml.text(node, 'Prefix') ?? '')
  const encryption = readEncryption(node.children.get('Encryption')?.[0])
  return {
    bucket,
    format: readFormat(xml.requireText(node, DESTINATION, 'Format')),
    ...(accountId !== undefined && { accountId: accountId.slice(0, 128) }),
    ...(prefix !== '' && { prefix }),
    ...(encryption && { encryption }),
  }
}

function readFormat(text: string): InventoryFormat {
  if (text !== 'ORC') return oneOf(text, 'Format', INVENTORY_FORMATS)
  throw invalid('Format', 'ORC is not offered: use CSV or Parquet.', text)
}

function readPrefix(text: string): string {
  if (Buffer.byteLength(text) > MAX_PREFIX_BYTES)
    throw invalid('Prefix', `The prefix of the destination has more than ${MAX_PREFIX_BYTES} bytes.`)
  return text.replace(/\/+$/, '')
}

function readEncryption(node: xml.Node | undefined): ServerKey | undefined {
  if (!node) return undefined
  xml.requireChildren(node, 'Encryption', { once: ['SSE-S3', 'SSE-KMS'] })
  const kms = node.children.get('SSE-KMS')?.[0]
  if (!kms === !node.children.has('SSE-S3')) throw xml.malformed('Encryption holds either SSE-S3 or SSE-KMS.')
  if (!kms) return { algorithm: 'AES256' }
  const keyId = xml.requireText(kms, 'SSE-KMS', 'KeyId')
  return { algorithm: 'aws:kms', ...(keyId !== OWN_KEY && { keyId }) }
}

/** Each field once, in the order of the client. */
function readFields(root: xml.Node, offered: readonly string[]): readonly string[] {
  const node = root.children.get('OptionalFields')?.[0]
  if (!node) return []
  xml.requireChildren(node, 'OptionalFields', { many: ['Field'] })
  const fields = node.children.get('Field') ?? []
  for (const field of fields)
    if (!offered.includes(field.text.trim())) throw xml.notOffered(field, field.text.trim(), offered)
  return [...new Set(fields.map(({ text }) => text.trim()))]
}

function only(node: xml.Node, name: string, child: string): xml.Node {
  const found = node.children.get(child)?.[0]
  if (!found) throw xml.malformed(`${name} needs ${child}.`)
  return found
}

function oneOf<T extends string>(text: string, name: string, values: readonly T[]): T {
  const found = values.find((value) => value === text)
  if (found === undefined) throw xml.malformed(`${name} must be ${values.join(' or ')}.`)
  return found
}

function invalid(name: string, message: string, value?: string): S3Error {
  const fields = { ArgumentName: name, ...(value !== undefined && { ArgumentValue: value.slice(0, 200) }) }
  return new S3Error('InvalidArgument', { message, fields })
}

/** The children of an `<InventoryConfiguration>`, in the order of S3. */
export function configurationElements(configuration: InventoryConfiguration): string {
  const { id, enabled, filter, versions, fields, frequency, destination } = configuration
  return [
    `<Destination><${DESTINATION}>${destinationElements(destination)}</${DESTINATION}></Destination>`,
    xml.element('IsEnabled', enabled),
    filter === undefined ? '' : `<Filter>${xml.element('Prefix', filter)}</Filter>`,
    xml.element('Id', id),
    xml.element('IncludedObjectVersions', versions),
    fields.length === 0
      ? ''
      : `<OptionalFields>${fields.map((field) => xml.element('Field', field)).join('')}</OptionalFields>`,
    `<Schedule>${xml.element('Frequency', frequency)}</Schedule>`,
  ].join('')
}

function destinationElements({ accountId, bucket, format, prefix, encryption }: InventoryDestination): string {
  return [
    xml.element('AccountId', accountId),
    xml.element('Bucket', ARN + bucket),
    xml.element('Format', format),
    xml.element('Prefix', prefix),
    encryption ? `<Encryption>${encryptionElement(encryption)}</Encryption>` : '',
  ].join('')
}

function encryptionElement({ algorithm, keyId = OWN_KEY }: ServerKey): string {
  return algorithm === 'AES256' ? '<SSE-S3></SSE-S3>' : `<SSE-KMS>${xml.element('KeyId', keyId)}</SSE-KMS>`
}

/** What all keys of an inventory begin with, and end this part of it with `/`. */
export function baseOf(
  bucket: string,
  { id, destination: { prefix } }: Pick<InventoryConfiguration, 'id' | 'destination'>,
): string {
  return `${prefix === undefined ? '' : `${prefix}/`}${bucket}/${id}/`
}

/**
 * Throws AccessDenied or NoSuchBucket unless the caller may write such a key now, by rights, policies and ACLs, as for
 * PutObject; and InvalidRequest if the server lacks the key to encrypt it with.
 */
export async function requireDestination(
  context: Context,
  { bucket, encryption, accountId }: InventoryDestination,
  key: string,
): Promise<void> {
  await context.authorizer.decide({ action: 's3:PutObject', bucket, key })
  context.checks.requireKey(bucket, key, 'write')
  await context.checks.requireOwner(bucket, { action: 's3:PutObject', key })
  if (accountId !== undefined) await context.checks.requireBucketOwner(bucket, accountId, 'AccountId')
  await context.store.storedAs({ bucket, key, encryption }, undefined)
}
