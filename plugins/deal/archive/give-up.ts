import { type Archive, pauseAfter, type StoredObject } from 'dealgate/plugin'
import { isEvicted } from '../configuration.js'
import type { DealDeps } from '../deps.js'
import { type DealRecord, endBegins, idOf } from '../records/deal-record.js'
import { dealsHolding, isUnderWay } from '../records/held-deals.js'
import { askToEvict } from './copy-calls.js'
import type { LocalCopy } from './local-copies.js'
import { restore } from './restore.js'

const DAY_MS = 86_400_000

/** Before an eviction that failed is retried. */
const BACKOFF = { firstMs: 10 * 60_000, longestMs: DAY_MS }

/** Asks the gateway to evict its copies of objects in classes GLACIER and DEEP_ARCHIVE, where no data can be lost. */
export class GiveUp {
  readonly #deps: DealDeps
  #reported = false

  constructor(deps: DealDeps) {
    this.#deps = deps
  }

  /** True when the option `eviction` is on and this gateway can evict. Throws what Gateway.features throws. */
  async mayEvict(): Promise<boolean> {
    const { host, options } = this.#deps
    if (options.eviction === 'off') return false
    const { dealEviction, dealStatus } = await host.own.gateway.features()
    if (dealEviction && dealStatus) return true
    if (!this.#reported)
      host.log.warn('the option eviction has no effect: this gateway cannot compare and evict its copy of an object')
    this.#reported = true
    return false
  }

  /** Handles a copy that is due, as far as that is possible now. */
  async attempt(copy: LocalCopy, evicting: boolean, signal: AbortSignal): Promise<void> {
    const { bucket, key, revision } = copy
    const object = await this.#deps.host.own.store.findRevision(bucket, key, revision)
    if (!object) return this.#deps.copies.replace(copy)
    // An earlier process may have died after the eviction.
    if (object.cold) return this.#gone(copy, object)
    const restore = object.archive?.restore
    if (restore && 'ongoing' in restore) return
    const until = restore?.until
    if (!isEvicted(object.archive?.storageClass) || until === null) return this.#deps.copies.replace(copy)
    // The object was restored again since.
    if (until !== undefined && until > this.#deps.host.now())
      return this.#deps.copies.replace(copy, { ...copy, due: until })
    if (!evicting) return until === undefined ? undefined : this.#keep(copy)
    const holding = await dealsHolding(this.#deps, object)
    const lasting = holding.filter((deal) => this.#lastsOn(deal))
    if (lasting.length > 0) return this.#evict(copy, object, lasting, signal)
    const { jobId } = object.archive ?? {}
    if (holding.length > 0 || (jobId !== undefined && (await isUnderWay(this.#deps, jobId)))) return
    await this.#keep(copy)
  }

  /** False for a deal that ends soon: the evicted copy would have to be restored at once. */
  #lastsOn(deal: DealRecord): boolean {
    const { host, options } = this.#deps
    const end = endBegins(deal, options.rescueBeforeDays) ?? Number.POSITIVE_INFINITY
    return deal.live?.state === 'StorageDealActive' && end > host.now()
  }

  /** Nothing evicts the copy any more: the object stays readable. */
  async #keep(copy: LocalCopy): Promise<void> {
    const { bucket, key, revision } = copy
    await this.#deps.host.own.store.annotate(bucket, key, revision, (archive) =>
      archive?.restore ? { ...archive, restore: { until: null } } : archive,
    )
    await this.#deps.copies.replace(copy)
  }

  /** @param lasting deals, of which one must deliver the object before the copy is evicted */
  async #evict(
    copy: LocalCopy,
    object: StoredObject,
    lasting: readonly DealRecord[],
    signal: AbortSignal,
  ): Promise<void> {
    const { bucket, key } = copy
    const { host, copies } = this.#deps
    const { dealVerification } = await host.own.gateway.features()
    // A gateway without `dealVerification` compares any active deal, and names it in its answer.
    const asked = dealVerification ? lasting.map(({ deal }) => deal.dealCid).reverse() : [undefined]
    const why: string[] = []
    for (const dealCid of asked) {
      const answer = await askToEvict(host.own, { ...copy, signal, dealCid })
      const gone = answer.outcome === 'gone' || (answer.outcome === 'unknown' && (await this.#isGone(copy)))
      if (!gone) {
        why.push(answer.message)
        continue
      }
      const verified = answer.dealCid ?? dealCid
      const record = lasting.find(({ deal }) => deal.dealCid === verified)
      if (verified !== undefined) await this.#deps.deals.setVerified(record ? idOf(record) : verified, host.now())
      host.log.info({ bucket, key, deal: verified }, 'the gateway evicted its copy of an object, which a deal holds')
      return this.#gone(copy, object, verified)
    }
    const failures = (copy.failures ?? 0) + 1
    const due = host.now() + pauseAfter(failures, BACKOFF)
    if (failures === 1) await this.#record(copy, 'EvictionRefused', { message: why.join(' ') })
    await copies.replace(copy, { ...copy, failures, due })
    host.log.info({ bucket, key, why, failures }, 'the gateway refused to evict its copy of an object in class GLACIER')
  }

  /**
   * Called when the gateway has no copy any more. Eviction may take long: an object that was copied onto itself into
   * another class meanwhile, or whose restore was prolonged, is restored; otherwise a restored copy has expired.
   */
  async #gone(copy: LocalCopy, object: StoredObject, dealCid?: string): Promise<void> {
    const { bucket, key, revision } = copy
    const { host, copies } = this.#deps
    const now = host.now()
    let days: number | undefined
    let ended = false
    await host.own.store.annotate(bucket, key, revision, (archive) => {
      const { restore, ...others } = archive ?? {}
      // A restore has started already.
      if (restore && 'ongoing' in restore) return archive
      days = daysLeft(archive, now)
      ended = days === undefined && restore !== undefined
      return ended ? others : archive
    })
    await this.#record(copy, 'Evicted', {
      ...(dealCid !== undefined && { dealCid }),
      ...(ended ? { message: 'The time for which the copy was restored is over.' } : {}),
    })
    if (days !== undefined) await this.#bringBack(copy, days)
    await copies.replace(copy)
    if (ended) await host.own.archive.moved('ObjectRestore:Delete', object, { time: now })
  }

  /** The plan for a copy is the same until it is carried out, also after a restart. */
  async #record(
    copy: LocalCopy,
    event: 'Evicted' | 'EvictionRefused',
    more: { readonly message?: string; readonly dealCid?: string },
  ): Promise<void> {
    const { revision, due } = copy
    await this.#deps.events.add(copy, {
      id: `${revision}/${due}/${event}`,
      event,
      revision,
      account: '',
      by: '',
      ...more,
    })
  }

  /** @param days 0: permanently */
  async #bringBack({ bucket, key, revision }: LocalCopy, days: number): Promise<void> {
    const { own, log } = this.#deps.host
    const object = await own.store.findRevision(bucket, key, revision)
    if (!object?.cold) return
    await restore(this.#deps, object, { days, tier: 'Standard', description: '' }, own)
    log.info({ bucket, key, days }, 'an object is being restored: its copy was evicted but is still needed')
  }

  async #isGone({ bucket, key, revision }: LocalCopy): Promise<boolean> {
    return (await this.#deps.host.own.store.findRevision(bucket, key, revision))?.cold === true
  }
}

/** For how many more days a local copy of the object must exist, 0 for ever; undefined when it may be evicted. */
function daysLeft(archive: Archive | undefined, now: number): number | undefined {
  const until = archive?.restore && 'until' in archive.restore ? archive.restore.until : undefined
  if (!isEvicted(archive?.storageClass) || until === null) return 0
  return until !== undefined && until > now ? Math.max(1, Math.ceil((until - now) / DAY_MS)) : undefined
}
