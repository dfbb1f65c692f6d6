import { randomBytes } from 'node:crypto'
import { LRUCache } from 'lru-cache'
import { S3Error } from '../../../common/errors/s3-error.js'
import type { Logging } from '../../../common/log.js'
import type { CustomerKey, Encrypted, EncryptionOrder, ServerKey, UploadEncryption } from '../../api/encryption.js'
import type { ByteRange, Download, Gateway, GatewayObject } from '../../api/gateway.js'
import type { Sealer } from '../../api/plugin.js'
import type { BucketSettings } from '../../api/settings.js'
import type { StoredObject } from '../../api/store.js'
import { AGE_MAGIC, headerEnd, isMadeFor, makeHeader, type NewHeader, openHeader, type Unopened } from './age-header.js'
import { identityOf, traceOf } from './customer-key.js'
import { OWN_KEY } from './key-file.js'
import type { Keyring } from './keyring.js'
import { OpenedDownload, type SealedBytes, type SealedSpan, SplitDownload, sealedSpan } from './opened-download.js'
import { NONCE_BYTES, payloadKey } from './payload.js'

declare module '../../api/settings.js' {
  interface SettingTypes {
    /** What new objects of the bucket are encrypted with, unless their request states it. */
    encryption: ServerKey
  }
}

/** With the newest key of the server. */
const OWN = { algorithm: 'AES256' } as const

/** Most keys of objects that are kept: each is 32 bytes, or up to `BEGINNING_BYTES` for the key of a client. */
const MAX_KNOWN = 1_000

/** Bytes that have the header and the nonce of an object with the key of a client. */
const BEGINNING_BYTES = 1024

/** Time for which the key of an object with a named key is kept, ms: the name may lose its key. */
const NAMED_MS = 5 * 60_000

interface EncryptionDeps {
  readonly keys: Keyring
  /** Resolves true if all new objects of a bucket are encrypted, whatever its settings say. */
  readonly demanded: (bucket: string) => Promise<boolean>
  readonly settings: Pick<BucketSettings, 'get'>
  /** Seals the keys of staged parts. */
  readonly sealer: Sealer
}

interface SealedObject extends GatewayObject {
  readonly encrypted: Encrypted
}

/** An object as it was when it was opened. */
interface OpenedObject {
  readonly object: SealedObject
  /** The key of its payload, or its header and nonce, for which the key of a client is asked each time. */
  readonly opened: { readonly payload: Buffer } | { readonly head: Buffer }
}

interface ObjectName {
  readonly bucket: string
  readonly key: string
}

/** How objects of this server are encrypted, and opened again: docs/encryption.md. */
export class Encryption {
  readonly #deps: EncryptionDeps
  /** Objects that were opened, by bucket and key. */
  readonly #known = new LRUCache<string, OpenedObject>({ max: MAX_KNOWN })

  constructor(deps: EncryptionDeps) {
    this.#deps = deps
  }

  /** What new objects of a bucket are encrypted with; undefined for nothing. */
  async defaultOf(bucket: string): Promise<ServerKey | undefined> {
    const own = await this.#deps.settings.get(bucket, 'encryption')
    return own ?? ((await this.#deps.demanded(bucket)) ? OWN : undefined)
  }

  async #orderFor(bucket: string, asked: EncryptionOrder | undefined): Promise<EncryptionOrder | undefined> {
    if (asked?.algorithm === 'SSE-C' || asked?.algorithm === 'AES256') return asked
    if (asked?.keyId !== undefined) return asked
    const own = await this.defaultOf(bucket)
    if (!asked) return own && (own.algorithm === 'AES256' ? own : { keyId: OWN_KEY, ...own })
    return { keyId: OWN_KEY, ...(own?.algorithm === 'aws:kms' && own), ...asked }
  }

  /**
   * The header of a new object, or of an upload that has begun; undefined for one that is not encrypted. Throws
   * S3Error.
   */
  async seal(
    name: ObjectName,
    asked: EncryptionOrder | UploadEncryption | 'none' | undefined,
    uploadId = '',
  ): Promise<Sealed | undefined> {
    // An upload may have begun before its bucket demanded it.
    if (asked === 'none') return (await this.#deps.demanded(name.bucket)) ? this.#sealFor(name, OWN) : undefined
    if (asked && 'partsKey' in asked) {
      const { algorithm, keyId, bucketKey, header, partsKey } = asked
      if (header === undefined)
        return this.#sealFor(name, { algorithm: algorithm as ServerKey['algorithm'], keyId, bucketKey })
      const known = { header: Buffer.from(header, 'base64'), fileKey: await this.partsKey(uploadId, partsKey) }
      return { header: known, encrypted: { algorithm, header: known.header.length } }
    }
    const order = await this.#orderFor(name.bucket, asked)
    return order && this.#sealFor(name, order)
  }

  async #sealFor(name: ObjectName, order: EncryptionOrder): Promise<Sealed> {
    const customer = order.algorithm === 'SSE-C' ? order.customer : undefined
    const header = await makeHeader(await this.#deps.keys.recipientsFor(order), textOf(name, customer))
    const { length } = header.header
    if (order.algorithm === 'SSE-C') return { header, encrypted: { algorithm: order.algorithm, header: length } }
    const { algorithm, keyId, bucketKey } = order
    const more = { ...(keyId !== undefined && { keyId }), ...(bucketKey && { bucketKey }) }
    return { header, encrypted: { algorithm, ...more, header: length } }
  }

  /**
   * A header for the keys of today, for the payload of an object that is there; `current` if it has one. Throws
   * S3Error.
   * @param header of the object
   */
  async rewrap(name: ObjectName, encrypted: Encrypted, header: Buffer): Promise<Sealed | 'current' | Unopened> {
    const { algorithm, keyId } = encrypted
    if (algorithm === 'SSE-C') return 'no key'
    const { keys } = this.#deps
    const recipients = await keys.recipientsFor({ algorithm, ...(keyId !== undefined && { keyId }) })
    const fileKey = await keys.open(header, encrypted, textOf(name), undefined)
    if (typeof fileKey === 'string') return fileKey
    try {
      const { unlabelled, ...described } = encrypted
      if (!unlabelled && isMadeFor(header, fileKey, recipients)) return 'current'
      const made = await makeHeader(recipients, textOf(name), fileKey)
      return { header: made, encrypted: { ...described, header: made.header.length } }
    } finally {
      fileKey.fill(0)
    }
  }

  /** Throws S3Error for bytes as they are, if their bucket has begun to demand encryption while they arrived. */
  async requirePlainAllowed(bucket: string): Promise<void> {
    if (await this.#deps.demanded(bucket)) throw new S3Error('ServiceUnavailable', { message: DEMANDED_SINCE })
  }

  /** For an upload that begins; undefined if its object is not to be encrypted. Throws S3Error. */
  async beginUpload(
    name: ObjectName,
    uploadId: string,
    asked: EncryptionOrder | undefined,
  ): Promise<UploadEncryption | undefined> {
    const { sealer } = this.#deps
    // A key that is not there is refused before gigabytes of parts are sent.
    const sealed = await this.seal(name, asked)
    if (!sealed) return undefined
    const { header, encrypted } = sealed
    const { header: _, ...described } = encrypted
    const isCustomers = encrypted.algorithm === 'SSE-C'
    const key = isCustomers ? header.fileKey : randomBytes(16)
    const partsKey = await sealer.seal(key.toString('hex'), purposeOf(uploadId))
    for (const each of [key, header.fileKey]) each.fill(0)
    return { ...described, partsKey, ...(isCustomers && { header: header.header.toString('base64') }) }
  }

  /** Throws S3Error if the key of a client is not that with which the upload has begun. */
  async requireUploadKey(
    name: ObjectName,
    encryption: UploadEncryption | undefined,
    customer: CustomerKey | undefined,
  ): Promise<void> {
    const header = encryption?.header
    if (header === undefined) {
      if (customer) throw new S3Error('InvalidRequest', { message: NOT_APPLICABLE })
      return
    }
    if (!customer) throw new S3Error('InvalidRequest', { message: KEY_OF_UPLOAD })
    const found = await openHeader(Buffer.from(header, 'base64'), [identityOf(customer)], textOf(name, customer))
    if (typeof found === 'string') throw new S3Error('InvalidRequest', { message: OTHER_KEY_OF_UPLOAD })
    found.fill(0)
  }

  /** Throws S3Error. */
  async partsKey(uploadId: string, sealed: string): Promise<Buffer> {
    const text = await this.#deps.sealer.open(sealed, purposeOf(uploadId))
    if (text !== undefined) return Buffer.from(text, 'hex')
    throw new S3Error('InternalError', {
      message:
        'The parts of this upload were encrypted with another sealing key. Abort the upload, and begin it again.',
    })
  }

  /** The stored bytes to ask for first where a range of an object is to be opened by the key of a client. */
  readonly beginning: SealedSpan['stored'] = { first: 0, last: BEGINNING_BYTES - 1 }

  /** The stored bytes that hold a range of an object that was opened lately, if it is the same still. */
  expect(name: ObjectName, range: ByteRange): SealedSpan['stored'] | undefined {
    const known = this.#known.get(textOf(name))
    try {
      return known && sealedSpan(known.object, range).stored
    } catch {
      // Another object may have the range.
      return undefined
    }
  }

  /**
   * The content of an encrypted object. Takes over the download. Resolves undefined if the object was replaced
   * meanwhile. Throws S3Error.
   * @param encrypted as the object says, or its record
   * @param download of any bytes of it; without a range, of all
   */
  async open(
    gateway: Pick<Gateway, 'download'>,
    { bucket, key }: ObjectName,
    encrypted: Encrypted,
    download: Download,
    { range, expected, customer, logger }: Opening,
  ): Promise<Download | undefined> {
    const object = { ...download.object, encrypted }
    let current = download
    /** Replaces the download by one of other bytes of the same object. */
    const change = async (first: number, last: number): Promise<boolean> => {
      current.discard()
      current = await gateway.download(bucket, key, { first, last })
      if (versionOf(current.object) === versionOf(object)) return true
      current.discard()
      return false
    }
    try {
      requireApplicable(encrypted, customer)
      const span = sealedSpan(object, range)
      const known = await this.#keyLately({ bucket, key }, object, customer, logger)
      // What was opened lately may have become another object since the bytes of this one were asked for.
      const isSpan = current.first === span.stored.first && current.last === span.stored.last
      if (known && expected && isSpan) return new OpenedDownload(object, span, known, current)
      const headLength = encrypted.header + NONCE_BYTES
      if (span.firstChunk === 0) {
        if (range && !(await change(0, span.stored.last))) return undefined
        const split = new SplitDownload(current, headLength)
        const payload = known ?? (await this.#keyOf(bucket, object, await split.head, customer, logger))
        const lend: SealedBytes['lend'] = (sink) => split.rest(sink)
        const taken = current
        return new OpenedDownload(object, span, payload, { lend, discard: () => taken.discard() })
      }
      let payload = known
      if (!payload) {
        if (!holds(current, headLength) && !(await change(0, headLength - 1))) return undefined
        const head = await new SplitDownload(current, headLength).head
        payload = await this.#keyOf(bucket, object, head, customer, logger)
      }
      const { first, last } = span.stored
      return (await change(first, last)) ? new OpenedDownload(object, span, payload, current) : undefined
    } catch (error) {
      current.discard()
      throw error
    }
  }

  /**
   * Throws S3Error if a key of a client is not that of an object: the object itself shows it. Resolves false if the
   * object was replaced meanwhile.
   */
  async verifyKey(
    gateway: Pick<Gateway, 'download'>,
    { bucket, key }: ObjectName,
    object: Pick<StoredObject, 'encrypted' | 'storedSize' | 'revision' | 'writeId'>,
    customer: CustomerKey | undefined,
    logger: Logging,
  ): Promise<boolean> {
    const { encrypted, storedSize, revision, writeId } = object
    requireApplicable(encrypted, customer)
    if (!encrypted || !customer) return true
    sealedSpan({ size: storedSize ?? 0, encrypted }, undefined)
    const known = await this.#keyLately(
      { bucket, key },
      writeId === undefined ? { revision } : { revision, writeId },
      customer,
      logger,
    )
    if (known) {
      known.fill(0)
      return true
    }
    const headLength = encrypted.header + NONCE_BYTES
    const download = await gateway.download(bucket, key, { first: 0, last: headLength - 1 })
    if (download.object.revision !== revision) {
      download.discard()
      return false
    }
    const head = await new SplitDownload(download, headLength).head
    ;(await this.#keyOf(bucket, { ...download.object, encrypted }, head, customer, logger)).fill(0)
    return true
  }

  /** The key of an object that was opened lately. Throws S3Error if it is not that of the client. */
  async #keyLately(
    name: ObjectName,
    version: Pick<GatewayObject, 'revision' | 'writeId'>,
    customer: CustomerKey | undefined,
    logger: Logging,
  ): Promise<Buffer | undefined> {
    const cached = this.#known.get(textOf(name))
    if (!cached || versionOf(cached.object) !== versionOf(version)) return undefined
    const { object, opened } = cached
    if ('payload' in opened) return customer ? undefined : opened.payload
    return customer && this.#keyOf(name.bucket, object, opened.head, customer, logger)
  }

  /** Opens the beginning of a stored object: header and nonce. */
  async #keyOf(
    bucket: string,
    object: SealedObject,
    head: Buffer,
    customer: CustomerKey | undefined,
    { log }: Logging,
  ): Promise<Buffer> {
    const header = head.subarray(0, head.length - NONCE_BYTES)
    const { encrypted } = object
    const name = { bucket, key: object.key }
    const isHeader = header.toString('latin1', 0, AGE_MAGIC.length) === AGE_MAGIC && headerEnd(header) === header.length
    const found: Buffer | Unopened = isHeader
      ? await this.#deps.keys.open(header, encrypted, textOf(name, customer), customer)
      : 'malformed'
    if (typeof found === 'string') {
      log.warn({ bucket, why: found }, 'an encrypted object could not be opened')
      throw customer && found !== 'malformed' ? new S3Error('AccessDenied', { message: WRONG_KEY }) : unopened(found)
    }
    const payload = payloadKey(found, head.subarray(header.length))
    found.fill(0)
    if (!customer) {
      const ttl = encrypted.algorithm === 'aws:kms' ? NAMED_MS : 0
      this.#known.set(textOf(name), { object, opened: { payload } }, { ttl })
    } else if (head.length <= BEGINNING_BYTES)
      this.#known.set(textOf(name), { object, opened: { head: Buffer.alloc(head.length, head) } })
    return payload
  }
}

/** A header for a new object, and what it says of the object. */
interface Sealed {
  readonly header: NewHeader
  readonly encrypted: Encrypted
}

/** True for a download that begins with the head of the object. */
function holds({ first, last }: Download, headLength: number): boolean {
  return first === 0 && last >= headLength - 1
}

interface Opening {
  readonly range: ByteRange | undefined
  /** The download is of the bytes that `expect` returned, for this object or for one before it. */
  readonly expected: boolean
  readonly customer: CustomerKey | undefined
  readonly logger: Logging
}

/** Throws S3Error if a request has a key of a client for an object without one, or the other way round. */
export function requireApplicable(encrypted: Encrypted | undefined, customer: CustomerKey | undefined): void {
  const needs = encrypted?.algorithm === 'SSE-C'
  if (needs !== (customer !== undefined))
    throw new S3Error('InvalidRequest', { message: needs ? KEY_NEEDED : NOT_APPLICABLE })
}

const DEMANDED_SINCE = 'The bucket demands encryption since this upload has begun. Send it again: it is encrypted then.'
const KEY_NEEDED =
  'The object was stored using a form of Server Side Encryption. The correct parameters must be provided to retrieve the object.'
const NOT_APPLICABLE = 'The encryption parameters are not applicable to this object.'
const WRONG_KEY =
  'Requests specifying Server Side Encryption with Customer provided keys must provide the correct secret key.'
const KEY_OF_UPLOAD =
  'The multipart upload initiate requested encryption. Subsequent part requests must include the appropriate encryption parameters.'
const OTHER_KEY_OF_UPLOAD = 'The provided encryption parameters did not match the ones used originally.'

/** Bucket names have no line breaks. */
function textOf({ bucket, key }: ObjectName, customer?: CustomerKey): string {
  return customer ? `${traceOf(customer)}\n${bucket}\n${key}` : `${bucket}\n${key}`
}

/** Revisions of legacy gateways are times, which two writes may have in common. */
function versionOf({ revision, writeId = '' }: Pick<GatewayObject, 'revision' | 'writeId'>): string {
  return `${revision}\n${writeId}`
}

function purposeOf(uploadId: string): string {
  return `parts of ${uploadId}`
}

const MESSAGES: Readonly<Record<Unopened, string>> = {
  'no key':
    'The object is encrypted, and this server has no key that opens it. Open it with the key of the server that wrote it: docs/encryption.md.',
  'another place':
    'The object was encrypted for another bucket or key, so that this server does not open it here. Copy the original with CopyObject.',
  malformed: 'The object is marked as encrypted, but it does not begin as it was written.',
  'too many stanzas': 'The header of the encrypted object has too many recipients: it is not one of this server.',
}

function unopened(why: Unopened): S3Error {
  const code = why === 'no key' || why === 'another place' ? 'AccessDenied' : 'InternalError'
  return new S3Error(code, { message: MESSAGES[why] })
}
