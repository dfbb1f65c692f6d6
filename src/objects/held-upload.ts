import type { Gateway, Upload, UploadAttributes, UploadResult, WriteOrder } from '../api/gateway.js'
import type { ObjectChecksum } from '../api/object-checksum.js'
import type { BodyFacts } from '../api/request.js'
import type { PutRequest, Source } from '../api/store.js'
import { textOf } from './object-record.js'
import { streamHoldingBack } from './sources.js'
import type { WritePlan } from './write-plan.js'

/**
 * One upload to the gateway, whose last bytes this server holds back until it has verified all of them: promise 1. The
 * gateway knows the exact length and cannot treat the object as complete before `commit`.
 */
export class HeldUpload {
  /** Bytes that the gateway gets, exact. */
  readonly length: number
  readonly #upload: Upload
  #facts: BodyFacts | undefined
  #rest: Buffer | undefined

  constructor(
    gateway: Gateway,
    request: PutRequest,
    { etag, encrypted }: WritePlan,
    declaredMd5: Buffer | undefined,
    length: number,
  ) {
    const { contentType, headers, metadata } = request.attributes
    // Member by member, here and below, since each write makes one: members behind a spread make a slow object.
    const attributes: UploadAttributes = {
      contentType,
      headers,
      metadata,
      writeId: request.writeId,
      encrypted,
      lock: request.lock,
      // A gateway that is told the ETag need not compute the MD5, which costs 1.4 s of CPU per GiB.
      etag: () => etag ?? (declaredMd5 ?? this.#facts?.md5)?.toString('hex'),
      // That of an encrypted object is about other bytes than the gateway has.
      checksum: () => (encrypted ? undefined : checksumOf(request, this.#facts)),
      record: () => {
        const { tags, acl, partSizes, attributes } = request
        return textOf({ tags, acl, label: attributes.label, checksum: checksumOf(request, this.#facts), partSizes })
      },
    }
    this.length = length
    this.#upload = gateway.upload(request.bucket, request.key, length, attributes)
  }

  /** What is known of the whole content. Throws before `receive` has resolved. */
  get facts(): BodyFacts {
    if (!this.#facts) throw new Error('the body has not arrived yet')
    return this.#facts
  }

  /** True while the gateway cannot have all bytes: this upload has no effect then. */
  get unsent(): boolean {
    return this.#upload.unsent
  }

  /**
   * Sends all but the last bytes of the source, and resolves once all are verified.
   * @param smallBodyBytes a body of at most this length is collected, and sent as a whole by `commit`
   */
  async receive(source: Source, digests: WritePlan['digests'], smallBodyBytes: number): Promise<void> {
    const collectBytes = this.length <= smallBodyBytes ? this.length : 0
    const { facts, rest } = await streamHoldingBack(source, this.#upload, collectBytes, digests)
    this.#facts = facts
    this.#rest = rest
  }

  /**
   * Sends the last bytes, and resolves once the gateway has stored the object. After WriteRefused, it may be called
   * again with another order.
   */
  async commit(order: WriteOrder): Promise<UploadResult> {
    const last = this.#rest
    // The outcome of the write may stay unknown for minutes: the bytes are not kept that long.
    this.#rest = undefined
    if (last) await this.#upload.write(last)
    return this.#upload.commit(order)
  }

  abort(): void {
    this.#upload.abort()
  }
}

/** The checksum to keep with the object: the one that the request states, else the one of the body. */
export function checksumOf({ checksum }: PutRequest, facts: BodyFacts | undefined): ObjectChecksum | undefined {
  if (checksum || !facts?.checksum) return checksum
  const { algorithm, value } = facts.checksum
  return { algorithm, value, type: 'FULL_OBJECT' }
}
