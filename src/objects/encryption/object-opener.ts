import { LRUCache } from 'lru-cache'
import { S3Error } from '../../../common/errors/s3-error.js'
import type { Logging } from '../../../common/log.js'
import type { CustomerKey, Encrypted } from '../../api/encryption.js'
import type { ByteRange, Download, Gateway, GatewayObject } from '../../api/gateway.js'
import type { StoredObject } from '../../api/store.js'
import { AGE_MAGIC, headerEnd, type Unopened } from './age-header.js'
import { type ObjectName, requireApplicable, textOf } from './customer-key.js'
import type { Keyring } from './keyring.js'
import { OpenedDownload, type SealedBytes, type SealedSpan, SplitDownload, sealedSpan } from './opened-download.js'
import { NONCE_BYTES, payloadKey } from './payload.js'

/** Most keys of objects that are kept: each is 32 bytes, or up to `BEGINNING_BYTES` for the key of a client. */
const MAX_KNOWN = 1_000

/** Bytes that have the header and the nonce of an object with the key of a client. */
const BEGINNING_BYTES = 1024

/** Time for which the key of an object with a named key is kept, ms: the name may lose its key. */
const NAMED_MS = 5 * 60_000

interface SealedObject extends GatewayObject {
  readonly encrypted: Encrypted
}

/** An object as it was when it was opened. */
interface OpenedObject {
  readonly object: SealedObject
  /** The key of its payload, or its header and nonce, for which the key of a client is asked each time. */
  readonly opened: { readonly payload: Buffer } | { readonly head: Buffer }
}

/** How a request opens an object. */
interface Opening {
  readonly range: ByteRange | undefined
  /** The download is of the bytes that `expect` returned, for this object or for one before it. */
  readonly expected: boolean
  readonly customer: CustomerKey | undefined
  readonly logger: Logging
}

/** An object that is being opened. */
interface Opened extends Opening {
  readonly bucket: string
  readonly object: SealedObject
  readonly span: SealedSpan
  /** The key of its payload, if it is known. */
  readonly known: Buffer | undefined
}

/** Opens encrypted objects, and remembers the keys of those that it has opened lately. */
export class ObjectOpener {
  readonly #keys: Keyring
  /** Objects that were opened, by bucket and key. */
  readonly #known = new LRUCache<string, OpenedObject>({ max: MAX_KNOWN })

  constructor(keys: Keyring) {
    this.#keys = keys
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
    opening: Opening,
  ): Promise<Download | undefined> {
    const object = { ...download.object, encrypted }
    const stored = new StoredBytes(gateway, { bucket, key }, download)
    const { range, expected, customer, logger } = opening
    try {
      requireApplicable(encrypted, customer)
      const span = sealedSpan(object, range)
      const known = await this.#keyLately({ bucket, key }, object, customer, logger)
      // What was opened lately may have become another object since the bytes of this one were asked for.
      if (known && expected && stored.are(span.stored)) return new OpenedDownload(object, span, known, download)
      const open = { bucket, object, span, known, ...opening }
      return await (span.firstChunk === 0 ? this.#openFromStart(stored, open) : this.#openWithin(stored, open))
    } catch (error) {
      stored.current.discard()
      throw error
    }
  }

  /** Opens a range that begins in the first chunk: one download has the header, the nonce and the range. */
  async #openFromStart(stored: StoredBytes, opened: Opened): Promise<Download | undefined> {
    const { bucket, object, span, known, range, customer, logger } = opened
    if (range && !(await stored.change(0, span.stored.last))) return undefined
    const { current } = stored
    const split = new SplitDownload(current, object.encrypted.header + NONCE_BYTES)
    const payload = known ?? (await this.#keyOf(bucket, object, await split.head, customer, logger))
    const lend: SealedBytes['lend'] = (sink) => split.rest(sink)
    return new OpenedDownload(object, span, payload, { lend, discard: () => current.discard() })
  }

  /** Opens a range further back: the key is found first, in memory or in the header of the object. */
  async #openWithin(stored: StoredBytes, opened: Opened): Promise<Download | undefined> {
    const { bucket, object, span, known, customer, logger } = opened
    let payload = known
    if (!payload) {
      const headLength = object.encrypted.header + NONCE_BYTES
      if (!stored.beginWith(headLength) && !(await stored.change(0, headLength - 1))) return undefined
      const head = await new SplitDownload(stored.current, headLength).head
      payload = await this.#keyOf(bucket, object, head, customer, logger)
    }
    const { first, last } = span.stored
    return (await stored.change(first, last)) ? new OpenedDownload(object, span, payload, stored.current) : undefined
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
      ? await this.#keys.open(header, encrypted, textOf(name, customer), customer)
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

/** The stored bytes of one version of an object. */
class StoredBytes {
  readonly #gateway: Pick<Gateway, 'download'>
  readonly #name: ObjectName
  readonly #version: string
  #current: Download

  constructor(gateway: Pick<Gateway, 'download'>, name: ObjectName, download: Download) {
    this.#gateway = gateway
    this.#name = name
    this.#version = versionOf(download.object)
    this.#current = download
  }

  /** The download of those that were asked for last. */
  get current(): Download {
    return this.#current
  }

  /** Replaces the download by one of other bytes. Resolves false if the object was replaced meanwhile. */
  async change(first: number, last: number): Promise<boolean> {
    const { bucket, key } = this.#name
    this.#current.discard()
    this.#current = await this.#gateway.download(bucket, key, { first, last })
    if (versionOf(this.#current.object) === this.#version) return true
    this.#current.discard()
    return false
  }

  /** True if exactly these bytes were asked for last. */
  are({ first, last }: SealedSpan['stored']): boolean {
    return this.#current.first === first && this.#current.last === last
  }

  /** True if the bytes begin with the head of the object. */
  beginWith(headLength: number): boolean {
    return this.#current.first === 0 && this.#current.last >= headLength - 1
  }
}

/** Revisions of legacy gateways are times, which two writes may have in common. */
function versionOf({ revision, writeId = '' }: Pick<GatewayObject, 'revision' | 'writeId'>): string {
  return `${revision}\n${writeId}`
}

const WRONG_KEY =
  'Requests specifying Server Side Encryption with Customer provided keys must provide the correct secret key.'

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
