import { type Archive, S3Error, type StoredObject, type TransitionedObject } from 'dealgate/plugin'
import type { ArchiveClass } from '../configuration.js'
import type { DealDeps } from '../deps.js'
import { OBJECT_DEAL, type ObjectDealInput } from '../jobs/inputs.js'
import { recoverSpending } from '../jobs/lost-deals.js'
import { dealOf } from '../records/held-deals.js'
import { costOf } from '../terms/terms.js'
import { publicWarningOf, refuseDearPrice } from '../terms/warnings.js'
import { mark, mustBeClass, requireOfflineTerms } from './admit.js'
import { releaseOrDrop, remember } from './restore.js'

const DAY_MS = 86_400_000

/**
 * Moves objects into classes of this plugin by lifecycle rules, at most `maxTransitionsPerDay` per day (UTC). The
 * others wait for another day.
 */
export class Transitions {
  readonly #deps: DealDeps
  /** Days since 1970. */
  #day = 0
  #begun = 0

  constructor(deps: DealDeps) {
    this.#deps = deps
  }

  /**
   * Starts a deal for the object, unless one holds it already. Resolves false for an object that is in a class of this
   * plugin or gone, and when the number or the cost of today's deals has reached its limit. Throws DealTermsRequired,
   * DealTermsInvalid, DealPriceTooHigh, ObjectNotEncrypted.
   */
  async move(word: string, { bucket, key, size, etag, revision }: TransitionedObject): Promise<boolean> {
    const { own } = this.#deps.host
    const storageClass = await mustBeClass(this.#deps, own, bucket, word)
    const object = await own.store.find(bucket, key, revision === undefined ? undefined : { revision })
    if (!object || object.etag !== etag || object.size !== size || object.cold) return false
    if (object.archive?.storageClass !== undefined) return false
    if (storageClass === 'DEEP_ARCHIVE') return this.#intoDeep(object)
    const known = await dealOf(this.#deps, object)
    if (known) return this.#enter(object, { ...known, storageClass })
    await publicWarningOf(this.#deps, own, { bucket, key, revision: object.revision })
    return this.#mayBegin() ? this.#withNewDeal(object, storageClass) : false
  }

  /** The next offline deal of the bucket holds the object. */
  async #intoDeep(object: StoredObject): Promise<boolean> {
    const { bucket, key, revision } = object
    const { own } = this.#deps.host
    // Offline deals have the current objects alone.
    if ((await own.store.find(bucket, key))?.revision !== revision) return false
    await requireOfflineTerms(own, bucket)
    const warning = await publicWarningOf(this.#deps, own, { bucket, key, revision })
    // The job of the offline deal, which notes it, has yet to come.
    if (warning !== undefined) this.#deps.host.log.info({ bucket, key }, warning)
    await mark(this.#deps, object)
    return own.store.annotate(bucket, key, revision, (archive) => ({ ...archive, storageClass: 'DEEP_ARCHIVE' }))
  }

  #mayBegin(): boolean {
    const { host, options } = this.#deps
    const day = Math.floor(host.now() / DAY_MS)
    if (day !== this.#day) this.#begun = 0
    this.#day = day
    if (this.#begun >= options.maxTransitionsPerDay) return false
    this.#begun++
    return true
  }

  /**
   * The job is created, held, before the object names it, and starts only then: whatever fails in between, there is one
   * deal or none.
   */
  async #withNewDeal(object: StoredObject, storageClass: ArchiveClass): Promise<boolean> {
    const { jobs, host, spending } = this.#deps
    const { bucket, key, revision, etag, size, storedSize = size } = object
    const agreed = await this.#deps.termsFor(host.own, bucket, { object, storageClass })
    await refuseDearPrice(this.#deps, host.own, agreed, () => ({ bytes: storedSize, objects: 1 }))
    const input: ObjectDealInput = { bucket, key, stamp: revision, etag, ...agreed, cause: 'lifecycle' }
    const resource = `/${bucket}/${key}`
    const job = await jobs.create({ kind: OBJECT_DEAL, resource, input, accessKeyId: '', held: true })
    try {
      const caps = await this.#deps.capsFor(host.own, bucket)
      await recoverSpending(this.#deps, host.own)
      await spending.reserve({ jobId: job.id, bucket, amount: costOf(agreed.terms) }, caps)
      return await this.#enter(object, { jobId: job.id, storageClass })
    } catch (error) {
      if (!(error instanceof S3Error) || error.code !== 'SpendCapReached') throw error
      host.log.info({ bucket, key }, 'a lifecycle transition waits for another day: the daily spending cap is reached')
      return false
    } finally {
      await releaseOrDrop(this.#deps, host.own, job)
    }
  }

  async #enter(object: StoredObject, change: Pick<Archive, 'jobId' | 'storageClass'>): Promise<boolean> {
    const { bucket, key, revision } = object
    const { own } = this.#deps.host
    if (!(await own.store.annotate(bucket, key, revision, (archive) => ({ ...archive, ...change })))) return false
    await remember(this.#deps, own, { ...object, archive: change })
    return true
  }
}
