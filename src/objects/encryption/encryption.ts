import { randomBytes } from 'node:crypto'
import { S3Error } from '../../../common/errors/s3-error.js'
import type { CustomerKey, Encrypted, EncryptionOrder, ServerKey, UploadEncryption } from '../../api/encryption.js'
import type { Sealer } from '../../api/plugin.js'
import type { BucketSettings } from '../../api/settings.js'
import { isMadeFor, makeHeader, type NewHeader, openHeader, type Unopened } from './age-header.js'
import { identityOf, NOT_APPLICABLE, type ObjectName, textOf } from './customer-key.js'
import { OWN_KEY } from './key-file.js'
import type { Keyring } from './keyring.js'
import { ObjectOpener } from './object-opener.js'

declare module '../../api/settings.js' {
  interface SettingTypes {
    /** What new objects of the bucket are encrypted with, unless their request states it. */
    encryption: ServerKey
  }
}

/** With the newest key of the server. */
const OWN = { algorithm: 'AES256' } as const

interface EncryptionDeps {
  readonly keys: Keyring
  /** Resolves true if all new objects of a bucket are encrypted, whatever its settings say. */
  readonly demanded: (bucket: string) => Promise<boolean>
  readonly settings: Pick<BucketSettings, 'get'>
  /** Seals the keys of staged parts. */
  readonly sealer: Sealer
}

/** How objects of this server are encrypted, and opened again: docs/encryption.md. */
export class Encryption {
  readonly opener: ObjectOpener
  readonly #deps: EncryptionDeps

  constructor(deps: EncryptionDeps) {
    this.opener = new ObjectOpener(deps.keys)
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
}

/** A header for a new object, and what it says of the object. */
interface Sealed {
  readonly header: NewHeader
  readonly encrypted: Encrypted
}

const DEMANDED_SINCE = 'The bucket demands encryption since this upload has begun. Send it again: it is encrypted then.'
const KEY_OF_UPLOAD =
  'The multipart upload initiate requested encryption. Subsequent part requests must include the appropriate encryption parameters.'
const OTHER_KEY_OF_UPLOAD = 'The provided encryption parameters did not match the ones used originally.'

function purposeOf(uploadId: string): string {
  return `parts of ${uploadId}`
}
