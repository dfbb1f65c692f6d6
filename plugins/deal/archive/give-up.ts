import { ownOrigin } from '../../../src/registry/own-origin.js'
import type { StoredObject } from '../../../src/store/store.js'
import { endBegins } from '../follow/schedule.js'
import type { DealParts } from '../parts.js'
import type { DealRecord } from '../records/deal-record.js'
import { askToEvict } from './copy-calls.js'
import { dealsHolding, isUnderWay } from './kept-elsewhere.js'
import type { LocalCopy } from './local-copies.js'
import { restore } from './restore.js'

/** A copy that could not be given up is tried again after so long, doubled each time, ms. */
const FIRST_PAUSE_MS = 10 * 60_000
const DAY_MS = 86_400_000
const LONGEST_PAUSE_MS = DAY_MS

/** Has the gateway give up its copies of objects in class GLACIER, as far as that loses nothing. */
export class GiveUp {
  readonly #parts: DealParts
  #told = false

  constructor(parts: DealParts) {
    this.#parts = parts
  }

  /** True when copies are to be given up, and this gateway can. Throws what asking it throws. */
  async mayEvict(): Promise<boolean> {
    const { host, options } = this.#parts
    if (options.eviction === 'off') return false
    const { dealEviction, dealStatus } = await host.own.gateway.features()
    if (dealEviction && dealStatus) return true
    if (!this.#told)
      host.log.warn(
        'the option eviction has no effect: this gateway cannot give up its copy of an object and compare it first',
      )
    this.#told = true
    return false
  }

  /** Does what is to be done with a copy that is due, as far as it can be done now. */
  async attempt(copy: LocalCopy, evicting: boolean, signal: AbortSignal): Promise<void> {
    const { bucket, key, stamp } = copy
    const object = await this.#parts.host.own.store.find(bucket, key)
    if (!object || object.stamp !== stamp || object.cold) return this.#parts.copies.replace(copy)
    const restore = object.archive?.restore
    if (restore && 'ongoing' in restore) return
    const until = restore?.until
    if (object.archive?.storageClass !== 'GLACIER' || until === null) return this.#parts.copies.replace(copy)
    // It was restored anew since.
    if (until !== undefined && until > this.#parts.host.now())
      return this.#parts.copies.replace(copy, { ...copy, due: until })
    if (!evicting) return until === undefined ? undefined : this.#keep(copy)
    const holding = await dealsHolding(this.#parts, object)
    if (holding.some((deal) => this.#lastsOn(deal))) return this.#evict(copy, object, signal)
    const { jobId } = object.archive
    if (holding.length > 0 || (jobId !== undefined && (await isUnderWay(this.#parts, jobId)))) return
    await this.#keep(copy)
  }

  /** A copy that is given up shortly before its deal ends would have to be brought back at once. */
  #lastsOn(deal: DealRecord): boolean {
    const { host, options } = this.#parts
    const end = endBegins(deal, options.rescueBeforeDays) ?? Number.POSITIVE_INFINITY
    return deal.live?.state === 'StorageDealActive' && end > host.now()
  }

  /** Nothing takes the copy away any more: the object can be read for good. */
  async #keep(copy: LocalCopy): Promise<void> {
    const { bucket, key, stamp } = copy
    await this.#parts.host.own.store.annotate(bucket, key, stamp, (archive) =>
      archive?.restore ? { ...archive, restore: { until: null } } : archive,
    )
    await this.#parts.copies.replace(copy)
  }

  async #evict(copy: LocalCopy, object: StoredObject, signal: AbortSignal): Promise<void> {
    const { bucket, key, stamp } = copy
    const { host } = this.#parts
    const { outcome, message } = await askToEvict(host.own, { bucket, key, stamp, signal })
    const gone = outcome === 'gone' || (outcome === 'unknown' && (await this.#isGone(copy)))
    if (!gone) {
      const failures = (copy.failures ?? 0) + 1
      const due = host.now() + Math.min(FIRST_PAUSE_MS * 2 ** (failures - 1), LONGEST_PAUSE_MS)
      await this.#parts.copies.replace(copy, { ...copy, failures, due })
      host.log.info({ bucket, key, why: message, failures }, 'the gateway keeps its copy of an object in class GLACIER')
      return
    }
    host.log.info({ bucket, key }, 'the gateway has given up its copy of an object, which a deal holds')
    await this.#parts.copies.replace(copy)
    if (object.archive?.restore !== undefined) await this.#ended(copy, object)
  }

  /** The time of a restored copy is over. */
  async #ended({ bucket, key, stamp }: LocalCopy, { size, etag }: StoredObject): Promise<void> {
    const { host } = this.#parts
    let until: number | null | undefined
    await host.own.store.annotate(bucket, key, stamp, (archive) => {
      const { restore, ...others } = archive ?? {}
      until = restore && 'until' in restore ? restore.until : undefined
      return until !== undefined && until !== null && until <= host.now() ? others : archive
    })
    // Somebody has asked for more time while the copy was being given up.
    if (until === null || (until ?? 0) > host.now()) await this.#bringBack(bucket, key, until)
    const cause = { name: 'ObjectRestore:Delete', origin: ownOrigin(), time: host.now() } as const
    await host.own.hooks.objectMoved({ ...cause, bucket, key, size, etag, storageClass: 'GLACIER' })
  }

  async #bringBack(bucket: string, key: string, until: number | null | undefined): Promise<void> {
    const { own, now } = this.#parts.host
    const object = await own.store.find(bucket, key)
    const days = until ? Math.max(1, Math.ceil((until - now()) / DAY_MS)) : 0
    if (object?.cold) await restore(this.#parts, object, { days, tier: 'Standard', description: '' }, own)
  }

  async #isGone({ bucket, key, stamp }: LocalCopy): Promise<boolean> {
    const object = await this.#parts.host.own.store.find(bucket, key)
    return object?.stamp === stamp && object.cold
  }
}
