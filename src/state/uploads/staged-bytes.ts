import { slowDown } from '../../common/errors/slow-down.js'
import { clientOf, type Quota, type QuotaBounds } from '../../common/quota.js'

const GiB = 1024 ** 3

export const defaultStagedBounds: QuotaBounds = Object.freeze({ total: 1024 * GiB, perClient: 512 * GiB })

/** What an upload has on disk. */
interface Staged {
  readonly client: string
  bytes: number
}

/** The bytes of parts on disk: of each upload, of each access key, and of all together, which has bounds. */
export class StagedBytes {
  readonly #quota: Quota
  readonly #uploads = new Map<string, Staged>()

  constructor(quota: Quota) {
    this.#quota = quota
  }

  /** Counts what an upload has on disk already, also beyond the bounds. */
  found(uploadId: string, accessKeyId: string, bytes: number): void {
    const staged = this.#of(uploadId, accessKeyId)
    staged.bytes += bytes
    this.#quota.count(staged.client, bytes)
  }

  /** Throws SlowDown when the access key, or all together, would have too much on disk. */
  take(uploadId: string, accessKeyId: string, bytes: number): void {
    const staged = this.#of(uploadId, accessKeyId)
    if (this.#quota.take(staged.client, bytes)) staged.bytes += bytes
    else {
      if (staged.bytes === 0) this.#uploads.delete(uploadId)
      throw slowDown(
        'There is no room for more parts of multipart uploads: complete or abort uploads that are under way, or raise --max-staged-bytes.',
      )
    }
  }

  /** For bytes that are gone; Infinity for all of an upload, whose bytes may have been given back already. */
  give(uploadId: string, bytes: number): void {
    const staged = this.#uploads.get(uploadId)
    if (!staged) return
    const given = Math.min(bytes, staged.bytes)
    staged.bytes -= given
    this.#quota.give(staged.client, given)
    if (staged.bytes === 0) this.#uploads.delete(uploadId)
  }

  #of(uploadId: string, accessKeyId: string): Staged {
    const known = this.#uploads.get(uploadId)
    if (known) return known
    const staged = { client: clientOf(accessKeyId, ''), bytes: 0 }
    this.#uploads.set(uploadId, staged)
    return staged
  }
}
