import { S3Error } from '../../../src/errors/s3-error.js'
import type { TransitionedObject } from '../../../src/registry/storage-class.js'
import type { Archive } from '../../../src/state/state.js'
import type { StoredObject } from '../../../src/store/store.js'
import type { ArchiveClass } from '../configuration.js'
import { OBJECT_DEAL, type ObjectDealInput } from '../jobs/inputs.js'
import type { DealParts } from '../parts.js'
import { costOf } from '../terms.js'
import { mustBeClass } from './admit.js'
import { remember, settle } from './held-deal.js'
import { dealOf } from './kept-elsewhere.js'

const DAY_MS = 86_400_000

/** Moves objects into classes of ours by lifecycle rules, so many a day (UTC): those that are left over wait for the pass of another day. */
export class Transitions {
  readonly #parts: DealParts
  /** Days since 1970. */
  #day = 0
  #begun = 0

  constructor(parts: DealParts) {
    this.#parts = parts
  }

  /**
   * Has a deal made of the object, unless one holds it already. Resolves false for an object that is in one of our classes, or is gone, and where today's deals are as many or
   * as dear as they may be. Throws DealTermsRequired, DealTermsInvalid.
   */
  async move(word: string, { bucket, key, size, etag }: TransitionedObject): Promise<boolean> {
    const { own } = this.#parts.host
    const storageClass = await mustBeClass(this.#parts, own, bucket, word)
    const object = await own.store.find(bucket, key)
    if (!object || object.etag !== etag || object.size !== size || object.cold) return false
    if (object.archive?.storageClass !== undefined) return false
    const known = await dealOf(this.#parts, object)
    if (known) return this.#enter(object, { ...known, storageClass })
    return this.#mayBegin() ? this.#withNewDeal(object, storageClass) : false
  }

  #mayBegin(): boolean {
    const { host, options } = this.#parts
    const day = Math.floor(host.now() / DAY_MS)
    if (day !== this.#day) this.#begun = 0
    this.#day = day
    if (this.#begun >= options.maxTransitionsPerDay) return false
    this.#begun++
    return true
  }

  /** The deal is on record, held, before the object names it, and begins only then: whatever happens in between, there is one or none. */
  async #withNewDeal(object: StoredObject, storageClass: ArchiveClass): Promise<boolean> {
    const { jobs, host, spending } = this.#parts
    const { bucket, key, stamp, etag, metadata } = object
    const terms = await this.#parts.termsFor(host.own, bucket, { metadata, storageClass })
    const input: ObjectDealInput = { bucket, key, stamp, etag, terms, cause: 'lifecycle' }
    const resource = `/${bucket}/${key}`
    const job = await jobs.create({ kind: OBJECT_DEAL, resource, input, accessKeyId: '', held: true })
    try {
      const caps = await this.#parts.capsFor(host.own, bucket)
      await spending.reserve({ jobId: job.id, bucket, amount: costOf(terms) }, caps)
      return await this.#enter(object, { jobId: job.id, storageClass })
    } catch (error) {
      if (!(error instanceof S3Error) || error.code !== 'SpendCapReached') throw error
      host.log.info({ bucket, key }, 'a lifecycle transition waits for another day: what deals may cost today is spent')
      return false
    } finally {
      await settle(this.#parts, host.own, job)
    }
  }

  async #enter(object: StoredObject, change: Pick<Archive, 'jobId' | 'storageClass'>): Promise<boolean> {
    const { bucket, key, stamp } = object
    const { own } = this.#parts.host
    if (!(await own.store.annotate(bucket, key, stamp, (archive) => ({ ...archive, ...change })))) return false
    await remember(this.#parts, own, { ...object, archive: change })
    return true
  }
}
