import type { CustomerKey, EncryptionOrder, ServerKey, UploadEncryption } from '../../api/encryption.js'
import type { ByteSink } from '../../api/request.js'
import type { PutRequest, Source, StoredObject } from '../../api/store.js'
import type { PartRecord, UploadRecord, Uploads } from '../../api/uploads.js'
import type { Encryption } from './encryption.js'
import { openPart } from './opened-download.js'
import { sealedLength, sealedPart } from './sealed-source.js'

/** How new objects are encrypted, and the parts of uploads until their object is stored: see Store. */
export class WriteEncryption {
  readonly #encryption: Encryption
  readonly #uploads: Pick<Uploads, 'readPart'>

  constructor(encryption: Encryption, uploads: Pick<Uploads, 'readPart'>) {
    this.#encryption = encryption
    this.#uploads = uploads
  }

  async storedAs(
    { encryption, uploadId, ...place }: Pick<PutRequest, 'bucket' | 'key' | 'encryption' | 'uploadId'>,
    size: number | undefined,
  ): Promise<{ readonly encrypted: boolean; readonly storedSize?: number }> {
    const { header } = (await this.#encryption.seal(place, encryption, uploadId)) ?? {}
    header?.fileKey.fill(0)
    const storedSize = size !== undefined && header ? sealedLength(header, size) : size
    return { encrypted: header !== undefined, ...(storedSize !== undefined && { storedSize }) }
  }

  encryptionFor(bucket: string): Promise<ServerKey | undefined> {
    return this.#encryption.defaultOf(bucket)
  }

  async keepsEncryption(
    { bucket, encrypted }: Pick<StoredObject, 'bucket' | 'encrypted'>,
    asked?: EncryptionOrder,
  ): Promise<boolean> {
    const order = asked ?? (await this.encryptionFor(bucket))
    if (!order) return encrypted?.algorithm !== 'SSE-C'
    if (order.algorithm === 'SSE-C' || order.algorithm !== encrypted?.algorithm) return false
    return order.keyId === undefined || order.keyId === encrypted.keyId
  }

  encryptionOfUpload(
    { uploadId, ...place }: Pick<UploadRecord, 'bucket' | 'key' | 'uploadId'>,
    asked: EncryptionOrder | undefined,
  ): Promise<UploadEncryption | undefined> {
    return this.#encryption.beginUpload(place, uploadId, asked)
  }

  requireUploadKey(upload: UploadRecord, customer: CustomerKey | undefined): Promise<void> {
    return this.#encryption.requireUploadKey(upload, upload.encryption, customer)
  }

  async stagedSource({ uploadId, encryption }: UploadRecord, part: Source): Promise<Source> {
    if (!encryption) return part
    const key = await this.#encryption.partsKey(uploadId, encryption.partsKey)
    return sealedPart(part, key, encryption.algorithm !== 'AES256')
  }

  async readPart({ uploadId, encryption }: UploadRecord, part: PartRecord, sink: ByteSink): Promise<void> {
    const read = (to: ByteSink) => this.#uploads.readPart(uploadId, part, to)
    if (!encryption || part.staged === undefined) return read(sink)
    await openPart(await this.#encryption.partsKey(uploadId, encryption.partsKey), part.staged, read, sink)
  }
}
