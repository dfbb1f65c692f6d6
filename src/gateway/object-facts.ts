import { randomBytes } from 'node:crypto'
import type { IncomingHttpHeaders } from 'node:http'
import { checksumAlgorithms } from '../../common/checksums/checksums.js'
import { S3Error } from '../../common/errors/s3-error.js'
import type { Encrypted, EncryptionAlgorithm } from '../api/encryption.js'
import type { GatewayObject, StoredHeaders, UploadAttributes } from '../api/gateway.js'
import type { GatewayFeatures } from '../api/gateway-features.js'
import type { ObjectChecksum } from '../api/object-checksum.js'
import type { ObjectLock } from '../api/versions.js'
import { hasControls, headerText } from '../http/header-text.js'
import type { BrandNames } from './brand.js'
import { nonsense } from './errors.js'

/** User metadata that marks an upload on gateways without ETags. Never shown to clients. */
const WRITE_ID_NAME = 'dealgate-rev'

/**
 * User metadata that marks an encrypted object: algorithm, length of the header, and for aws:kms the name of the key.
 * Never shown to clients.
 */
const ENCRYPTED_NAME = 'dealgate-encrypted'

const ENCRYPTED_MARK = /^(AES256|aws:kms|SSE-C) (\d{1,5})(?: ([!-~]{1,256}))?( bucket-key)?$/

/**
 * Algorithm and length at the end of an ETag, which listings show. The ETag before it is that of the content, or has a
 * `-`.
 */
const ENCRYPTED_ETAG = /^(.*)-([ekc])(\d{1,5})$/

const LETTERS: Readonly<Record<string, EncryptionAlgorithm>> = { e: 'AES256', k: 'aws:kms', c: 'SSE-C' }

/** Stands in for the revision of an object that the gateway has acknowledged without revealing its revision. */
export function unconfirmedRevision(writeId: string): string {
  return `unconfirmed/${writeId}`
}

/** Revision of folder objects on gateways that keep them as directories: they hold no bytes, and have one version. */
export const MARKER_REVISION = 'marker'

/** Requested where the disposition that the gateway derives from the key would break its answer. */
export const PLAIN_DISPOSITION = 'attachment'

/** Content type of an object that was stored without one, as in S3. */
export const DEFAULT_TYPE = 'binary/octet-stream'

/**
 * Most user metadata that public gateways accept, names with prefix and values, bytes (MinIO cmd/generic-handlers.go).
 */
const MAX_METADATA_BYTES = 2048

const STORED_NAMES = [
  'cache-control',
  'content-disposition',
  'content-encoding',
  'content-language',
  'expires',
] as const

/** The facts of one entry of a listing, or of the headers of one answer, in comparable form. */
interface VersionFacts {
  readonly key: string
  readonly lastModified: string
  readonly size: number
  readonly generation: string | undefined
}

/**
 * The generation, where every way to look at an object returns it; otherwise time and size, which all ways return
 * alike. Gateways with pagedListing list generations; without objectHead, listings are the only way to look.
 */
export function revisionOf(features: GatewayFeatures, facts: VersionFacts): string {
  if (facts.key.endsWith('/') && facts.size === 0 && !features.anyKey) return MARKER_REVISION
  if (features.pagedListing && facts.generation !== undefined) return facts.generation
  return `${facts.lastModified}/${facts.size}`
}

/**
 * What a download shows of the write that stored its bytes: the id, which a program may copy to other bytes, and the
 * ETag of the gateway, which then is another one, be it an MD5 or random. Undefined where the gateway states no ETag.
 */
export function writeMarkOf(writeId: string, { etag = '' }: IncomingHttpHeaders): string | undefined {
  return etag === '' ? undefined : `${writeId} ${etag}`
}

/** The time in the revision of an object of a gateway that has no generations; undefined in any other revision. */
export function timeOfRevision(revision: string): string | undefined {
  const time = revision.slice(0, Math.max(0, revision.lastIndexOf('/')))
  return isTime(time) ? time : undefined
}

/** False where another object of the key can have the same revision: a marker, or one of the same time and size. */
export function areRevisionsUnique({ anyKey, pagedListing }: GatewayFeatures): boolean {
  return anyKey && pagedListing
}

/** Throws InvalidArgument for a text that no header can carry, which must not be stored as another one. */
function storedText(text: string): string {
  if (hasControls(text))
    throw new S3Error('InvalidArgument', { message: 'A header or metadata of the object has a control character.' })
  return headerText(text)
}

/** The headers of an upload, without those of the transport. */
export function uploadHeaders(
  names: BrandNames,
  features: GatewayFeatures,
  attributes: UploadAttributes,
  writeId: string | undefined,
): Record<string, string> {
  const headers: Record<string, string> = {}
  if (attributes.contentType !== undefined) headers['content-type'] = storedText(attributes.contentType)
  for (const name of STORED_NAMES) {
    const value = attributes.headers[name]
    if (value !== undefined) headers[name] = storedText(value)
  }
  const { encrypted } = attributes
  const stated = attributes.etag?.()
  const etag = encrypted ? markedEtag(stated, encrypted) : stated
  if (features.objectHead && etag !== undefined) headers[names.header('etag')] = etag
  const checksum = features.objectChecksums ? attributes.checksum?.() : undefined
  if (checksum?.type === 'FULL_OBJECT') headers[names.header('checksum')] = `${checksum.algorithm} ${checksum.value}`
  const record = features.objectRecords ? attributes.record?.() : undefined
  if (record !== undefined) headers[names.header('record')] = record
  if (attributes.lock) Object.assign(headers, lockHeaders(names, attributes.lock))
  const metadata = metadataHeaders(names, attributes, writeId)
  return metadata ? Object.assign(headers, metadata) : headers
}

function lockHeaders(names: BrandNames, { mode, until, hold }: ObjectLock): Record<string, string> {
  return {
    ...(mode &&
      until !== undefined && { [names.header('lock-mode')]: mode, [names.header('retain-until')]: `${until}` }),
    ...(hold && { [names.header('legal-hold')]: 'ON' }),
  }
}

/**
 * The lock that an answer states. Throws S3Error for one that cannot be read: it must not be taken for none.
 */
function readLock(names: BrandNames, answer: IncomingHttpHeaders): ObjectLock | undefined {
  const mode = single(answer[names.header('lock-mode')])
  const hold = single(answer[names.header('legal-hold')]) === 'ON'
  if (mode === undefined) return hold ? { hold } : undefined
  const until = Number(single(answer[names.header('retain-until')]) ?? Number.NaN)
  if ((mode !== 'GOVERNANCE' && mode !== 'COMPLIANCE') || !Number.isSafeInteger(until))
    throw nonsense('states a lock that cannot be read')
  return { mode, until, ...(hold && { hold }) }
}

function metadataHeaders(
  names: BrandNames,
  { metadata, encrypted }: Pick<UploadAttributes, 'metadata' | 'encrypted'>,
  writeId: string | undefined,
): Record<string, string> | undefined {
  if (writeId === undefined && encrypted === undefined && isEmpty(metadata)) return undefined
  const marks: [string, string][] = []
  if (encrypted) marks.push([names.metaPrefix + ENCRYPTED_NAME, markOf(encrypted)])
  if (writeId !== undefined) marks.push([names.metaPrefix + WRITE_ID_NAME, writeId])
  const own = Object.entries(metadata)
    // A client must not have other bytes taken for encrypted ones.
    .filter(([name]) => name !== ENCRYPTED_NAME)
    .map(([name, value]) => [names.metaPrefix + name, storedText(value)] as const)
  const all = [...own, ...marks]
  if (writeId === undefined) return Object.fromEntries(all)
  const bytes = all.reduce((sum, [name, value]) => sum + name.length + value.length, 0)
  // The record in the state also holds the client's metadata; the mark ties that record to these bytes.
  return Object.fromEntries(bytes > MAX_METADATA_BYTES ? marks : all)
}

function markOf({ algorithm, header, keyId, bucketKey }: Encrypted): string {
  return [algorithm, header, ...(keyId === undefined ? [] : [keyId]), ...(bucketKey ? ['bucket-key'] : [])].join(' ')
}

function encryptedOf(mark: string | undefined): Encrypted | undefined {
  const [, algorithm, header, keyId, bucketKey] = ENCRYPTED_MARK.exec(mark ?? '') ?? []
  if (header === undefined) return undefined
  return {
    algorithm: algorithm as EncryptionAlgorithm,
    header: Number(header),
    ...(keyId !== undefined && { keyId }),
    ...(bucketKey !== undefined && { bucketKey: true }),
  }
}

/** An ETag that says nothing about any bytes: its `-` tells clients that it is no MD5. */
export function opaqueEtag(): string {
  return `${randomBytes(16).toString('hex')}-0`
}

/** Without the ETag of the content, an opaque one: the gateway would state the MD5 of the encrypted bytes. */
function markedEtag(etag: string | undefined, { algorithm, header }: Encrypted): string {
  const letter = Object.keys(LETTERS).find((name) => LETTERS[name] === algorithm)
  return `${etag ?? opaqueEtag()}-${letter}${header}`
}

/** The ETag of the content, and the mark of an encrypted object in the ETag. */
export function readEtag(text: string | undefined): Pick<GatewayObject, 'etag' | 'encrypted'> {
  if (text === undefined) return {}
  const [, etag, letter = '', header] = (text.includes('-') && ENCRYPTED_ETAG.exec(text)) || []
  const algorithm = LETTERS[letter]
  if (etag === undefined || algorithm === undefined) return { etag: text }
  return { etag, encrypted: { algorithm, header: Number(header) } }
}

function isEmpty(metadata: object): boolean {
  for (const _ in metadata) return false
  return true
}

/** Headers that ask for what the gateway keeps with an object. Only the owner of the bucket gets it. */
export function askForRecord(names: BrandNames, { objectRecords }: GatewayFeatures): Record<string, string> {
  return objectRecords ? { [names.header('with-record')]: '1' } : {}
}

/** The facts that the headers of a download or HEAD state. */
interface HeaderFacts {
  readonly contentType: string
  readonly headers: StoredHeaders
  readonly metadata: Record<string, string>
  /** The value of WRITE_ID_NAME, if this server uploaded the object. */
  readonly writeId: string | undefined
  /** The value of ENCRYPTED_NAME. */
  readonly encrypted: Encrypted | undefined
}

/**
 * @param forced the gateway replaces Content-Disposition and Cache-Control of the object with its own, which are left
 * out
 */
export function headerFacts(names: BrandNames, answer: IncomingHttpHeaders, key: string, forced: boolean): HeaderFacts {
  const headers: StoredHeaders = {}
  for (const name of STORED_NAMES) {
    const value = answer[name]
    if (typeof value === 'string' && !(forced && isForced(name, value, key))) headers[name] = value
  }
  let writeId: string | undefined
  let encrypted: Encrypted | undefined
  const metadata: [string, string][] = []
  for (const name in answer) {
    if (!name.startsWith(names.metaPrefix)) continue
    const value = answer[name]
    const shown = name.slice(names.metaPrefix.length)
    if (shown === WRITE_ID_NAME) writeId = single(value)
    else if (shown === ENCRYPTED_NAME) encrypted = encryptedOf(single(value))
    else if (typeof value === 'string') metadata.push([shown, value])
  }
  // Object.fromEntries makes own properties; assigning `__proto__` would lose the entry.
  const shown = metadata.length === 0 ? {} : Object.fromEntries(metadata)
  return { contentType: answer['content-type'] ?? DEFAULT_TYPE, headers, metadata: shown, writeId, encrypted }
}

/** The facts in the headers of a gateway with objectHead; undefined when they are not the headers of an object. */
export function factsFromHeaders(
  names: BrandNames,
  features: GatewayFeatures,
  answer: IncomingHttpHeaders,
  key: string,
  size: number,
): GatewayObject | undefined {
  const generation = single(answer[names.header('generation')])
  const lastModified = single(answer[names.header('last-modified')])
  if (generation === undefined || !isTime(lastModified)) return undefined
  const { contentType, headers, metadata, encrypted } = headerFacts(names, answer, key, false)
  const revision = revisionOf(features, { key, generation, lastModified, size })
  const facts: { -readonly [Fact in keyof GatewayObject]: GatewayObject[Fact] } = {
    key,
    size,
    lastModified,
    contentType,
    revision,
    headers,
    metadata,
  }
  const marked = readEtag(unquoted(single(answer.etag)))
  // Without the mark, the gateway has computed its ETag from the encrypted bytes.
  const etag = encrypted && !marked.encrypted ? undefined : marked.etag
  const writeId = single(answer[names.header('write-id')])
  if (etag !== undefined) facts.etag = etag
  const checksum = readChecksum(answer[names.header('checksum')])
  if (checksum) facts.checksum = checksum
  if (encrypted) facts.encrypted = encrypted
  if (writeId !== undefined) facts.writeId = writeId
  if (answer[names.header('storage-state')] === 'cold') facts.cold = true
  const fence = Number(single(answer[names.header('fence')]) ?? Number.NaN)
  if (Number.isSafeInteger(fence)) {
    facts.fence = fence
    const record = single(answer[names.header('record')])
    if (record !== undefined) facts.record = record
  }
  const versionId = single(answer[names.header('version-id')])
  if (versionId !== undefined) facts.versionId = versionId
  const lock = features.locks ? readLock(names, answer) : undefined
  if (lock) facts.lock = lock
  return facts
}

/** The checksum of all bytes that a gateway states; undefined for one of an algorithm that is not known here. */
export function readChecksum(text: unknown): ObjectChecksum | undefined {
  if (typeof text !== 'string') return undefined
  const at = text.indexOf(' ')
  const algorithm = checksumAlgorithms.find((name) => name.length === at && text.startsWith(name))
  return algorithm && { algorithm, value: text.slice(at + 1), type: 'FULL_OBJECT' }
}

export function single(value: string | string[] | undefined): string | undefined {
  return Array.isArray(value) ? value[0] : value
}

export function unquoted(etag: string | undefined): string | undefined {
  return etag !== undefined && etag.length > 1 && etag.startsWith('"') && etag.endsWith('"') ? etag.slice(1, -1) : etag
}

/** True when the part of `key` that gateways write into headers has control characters. */
export function endsInControl(key: string): boolean {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: these are what a header cannot carry
  return /[\x00-\x1f\x7f][^/]*$/.test(key)
}

function isForced(name: (typeof STORED_NAMES)[number], value: string, key: string): boolean {
  if (name === 'cache-control') return value === 'no-store'
  if (name !== 'content-disposition') return false
  if (endsInControl(key) && value === PLAIN_DISPOSITION) return true
  const last = key.slice(key.lastIndexOf('/') + 1)
  return [last, headerText(last), encodeURIComponent(last)].some((file) => value === `attachment; filename="${file}"`)
}

/** RFC 3339 with any precision. The ranges are those of each field, so a time in UTC needs no further check. */
const TIME =
  /^\d{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12]\d|3[01])T(?:[01]\d|2[0-3]):[0-5]\d:[0-5]\d(?:\.\d+)?(?:Z|[+-]\d\d:\d\d)$/

/**
 * True for a valid time as gateways write it. False for one such as the 45th of a month, which later code could not
 * handle.
 */
export function isTime(text: unknown): text is string {
  return typeof text === 'string' && TIME.test(text) && (text.endsWith('Z') || !Number.isNaN(Date.parse(text)))
}
