import { randomBytes } from 'node:crypto'
import { LRUCache } from 'lru-cache'
import type { Encrypted, EncryptionOrder } from '../../api/encryption.js'
import type { ByteRange, Download, Gateway, GatewayObject } from '../../api/gateway.js'
import type { Sealer } from '../../api/plugin.js'
import type { BucketSettings } from '../../api/settings.js'
import { S3Error } from '../../common/errors/s3-error.js'
import type { Logging } from '../../common/log.js'
import { AGE_MAGIC, makeHeader, type NewHeader, openHeader, type Unopened } from './age-header.js'
import type { KeyFile } from './key-file.js'
import { OpenedDownload, type SealedBytes, type SealedSpan, SplitDownload, sealedSpan } from './opened-download.js'
import { NONCE_BYTES, payloadKey } from './payload.js'

declare module '../../api/settings.js' {
  interface SettingTypes {
    /** What new objects of the bucket are encrypted with, unless their request states it. */
    encryption: { readonly algorithm: EncryptionOrder }
  }
}

/** Most keys of objects that are kept: each is 32 bytes. */
const MAX_KNOWN = 1_000

interface EncryptionDeps {
  readonly keys: KeyFile
  /** All new objects are encrypted, whatever their buckets say. */
  readonly everywhere: boolean
  readonly settings: Pick<BucketSettings, 'get'>
  /** Seals the keys of staged parts. */
  readonly sealer: Sealer
}

/** An object as it was when it was opened. */
interface Known {
  readonly object: GatewayObject
  /** Of its payload. */
  readonly payload: Buffer
}

interface Place {
  readonly bucket: string
  readonly key: string
}

/** How objects of this server are encrypted, and opened again: docs/encryption.md. */
export class Encryption {
  readonly #deps: EncryptionDeps
  /** Objects that were opened, by bucket and key. */
  readonly #known = new LRUCache<string, Known>({ max: MAX_KNOWN })

  constructor(deps: EncryptionDeps) {
    this.#deps = deps
  }

  /** What a new object is encrypted with; undefined for nothing. */
  async orderFor(bucket: string, asked?: EncryptionOrder | 'none'): Promise<EncryptionOrder | undefined> {
    if (asked !== undefined) return asked === 'none' ? undefined : asked
    if (this.#deps.everywhere) return 'AES256'
    return (await this.#deps.settings.get(bucket, 'encryption'))?.algorithm
  }

  /** The header of a new object; undefined for one that is not encrypted. Throws S3Error. */
  async seal(
    place: Place,
    asked: EncryptionOrder | 'none' | undefined,
  ): Promise<{ readonly header: NewHeader; readonly encrypted: Encrypted } | undefined> {
    const algorithm = await this.orderFor(place.bucket, asked)
    if (algorithm === undefined) return undefined
    const { recipients } = await this.#deps.keys.toWrite()
    const header = await makeHeader(recipients, textOf(place))
    return { header, encrypted: { algorithm, header: header.header.length } }
  }

  /** A new key for the parts of an upload, and its sealed form. Throws S3Error. */
  async newPartsKey(uploadId: string): Promise<string> {
    return this.#deps.sealer.seal(randomBytes(16).toString('hex'), purposeOf(uploadId))
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

  /** The stored bytes that hold a range of an object that was opened lately, if it is the same still. */
  expect(place: Place, range: ByteRange): SealedSpan['stored'] | undefined {
    const known = this.#known.get(textOf(place))
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
   * @param download of the range, as if it were one of the stored bytes
   * @param expected it is of the bytes that `expect` returned
   */
  async open(
    gateway: Pick<Gateway, 'download'>,
    { bucket, key }: Place,
    download: Download,
    range: ByteRange | undefined,
    logger: Logging,
    expected: boolean,
  ): Promise<Download | undefined> {
    const { object } = download
    const { encrypted } = object
    if (!encrypted) return download
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
      const span = sealedSpan(object, range)
      const lately = this.#known.get(textOf({ bucket, key }))
      const known = lately && versionOf(lately.object) === versionOf(object) ? lately.payload : undefined
      if (known && expected) return new OpenedDownload(object, span, known, current)
      const headLength = encrypted.header + NONCE_BYTES
      if (span.firstChunk === 0) {
        if (range && !(await change(0, span.stored.last))) return undefined
        const split = new SplitDownload(current, headLength)
        const payload = known ?? (await this.#keyOf(bucket, object, await split.head, logger))
        const lend: SealedBytes['lend'] = (sink) => split.rest(sink)
        const taken = current
        return new OpenedDownload(object, span, payload, { lend, discard: () => taken.discard() })
      }
      let payload = known
      if (!payload) {
        if (!(await change(0, headLength - 1))) return undefined
        payload = await this.#keyOf(bucket, object, await new SplitDownload(current, headLength).head, logger)
      }
      const { first, last } = span.stored
      return (await change(first, last)) ? new OpenedDownload(object, span, payload, current) : undefined
    } catch (error) {
      current.discard()
      throw error
    }
  }

  /** Opens the beginning of a stored object: header and nonce. */
  async #keyOf(bucket: string, object: GatewayObject, head: Buffer, { log }: Logging): Promise<Buffer> {
    const header = head.subarray(0, head.length - NONCE_BYTES)
    const place = textOf({ bucket, key: object.key })
    let found: Buffer | Unopened = 'malformed'
    if (header.toString('latin1', 0, AGE_MAGIC.length) === AGE_MAGIC) {
      const { identities } = await this.#deps.keys.toRead()
      found = await openHeader(header, identities, place)
      if (found === 'no key') {
        // Another process may have added one within the last second.
        const again = (await this.#deps.keys.toRead(true)).identities
        if (again.length !== identities.length) found = await openHeader(header, again, place)
      }
    }
    if (typeof found === 'string') {
      log.warn({ bucket, why: found }, 'an encrypted object could not be opened')
      throw unopened(found)
    }
    const payload = payloadKey(found, head.subarray(header.length))
    found.fill(0)
    this.#known.set(place, { object, payload })
    return payload
  }
}

/** Bucket names have no line breaks. */
function textOf({ bucket, key }: Place): string {
  return `${bucket}\n${key}`
}

/** Stamps of legacy gateways are times, which two writes may have in common. */
function versionOf({ stamp, writeId = '' }: GatewayObject): string {
  return `${stamp}\n${writeId}`
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
