import { createHash } from 'node:crypto'
import type { PluginState, Records } from 'dealgate'
import { type DealRecord, isFinal, type LiveState } from './deal-record.js'
import { Sequence } from './sequence.js'

/** CIDs of the deals of one object or bucket, oldest first. */
interface Subject {
  readonly bucket: string
  readonly key?: string
  readonly deals: readonly string[]
}

/** Most deals that are listed by object or bucket; older ones are still found by their CID. */
const MAX_OF_SUBJECT = 1000

/** Every deal that was made through this server. All methods throw ServiceUnavailable. */
export class DealRecords {
  readonly #state: Pick<PluginState, 'records' | 'locks'>
  readonly #deals: Records<DealRecord>
  readonly #subjects: Records<Subject>
  /** CIDs of deals that are not closed. */
  readonly #open: Records<true>
  readonly #order: Sequence

  constructor(state: Pick<PluginState, 'records' | 'locks'>) {
    this.#state = state
    this.#deals = state.records('deals')
    this.#subjects = state.records('deal-subjects')
    this.#open = state.records('deals-open')
    this.#order = new Sequence(state, 'deal-order')
  }

  get(dealCid: string): Promise<DealRecord | undefined> {
    return this.#deals.get(cidKey(dealCid))
  }

  /**
   * Records a deal for the job that made it. Durable when it resolves; idempotent. Resolves false, and records nothing,
   * when the deal belongs to another job.
   */
  remember(record: DealRecord): Promise<boolean> {
    const { dealCid } = record.deal
    return this.#alone(dealCid, async () => {
      const known = await this.get(dealCid)
      if (known && known.jobId !== record.jobId) return false
      // The indexes are written before the deal: after a crash in between, the deal is recorded again.
      await this.#order.add(dealCid)
      await this.#addToSubject(record)
      if (!isFinal((known ?? record).live?.state)) await this.#open.set(cidKey(dealCid), true)
      if (!known) await this.#deals.set(cidKey(dealCid), record)
      return true
    })
  }

  /** Deals for an object, or without key for a bucket as a whole, oldest first. */
  async of(bucket: string, key: string | undefined): Promise<readonly DealRecord[]> {
    const subject = await this.#subjects.get(subjectKey(bucket, key))
    const deals = await Promise.all((subject?.deals ?? []).map((dealCid) => this.get(dealCid)))
    return deals.filter((deal) => deal !== undefined)
  }

  /**
   * All deals, newest first, each with its place in their order. Memory does not grow with their number.
   * @param before only deals at lower places
   */
  async *newestFirst(before?: number): AsyncGenerator<[place: number, record: DealRecord], void> {
    for await (const [place, dealCid] of this.#order.backwards(before)) {
      const deal = await this.get(dealCid)
      if (deal) yield [place, deal]
    }
  }

  /** Deals that are not closed, in no order. */
  async *open(): AsyncGenerator<DealRecord, void> {
    for await (const [key] of this.#open.entries()) {
      const deal = await this.#deals.get(key)
      if (deal) yield deal
    }
  }

  /** Stores the present state. Resolves with the record after the change. */
  setLive(dealCid: string, live: LiveState): Promise<DealRecord | undefined> {
    return this.#change(dealCid, (record) => ({ ...record, live }))
  }

  setRenewedBy(dealCid: string, jobId: string): Promise<DealRecord | undefined> {
    return this.#change(dealCid, (record) => ({ ...record, renewedBy: jobId }))
  }

  /**
   * The whole object was retrieved from the deal and found identical.
   * @param time ms since 1970
   */
  setVerified(dealCid: string, time: number): Promise<DealRecord | undefined> {
    return this.#change(dealCid, ({ doubted: _, ...record }) => ({ ...record, verified: time }))
  }

  /**
   * The deal did not deliver the object.
   * @param time ms since 1970
   */
  setDoubted(dealCid: string, time: number): Promise<DealRecord | undefined> {
    return this.#change(dealCid, (record) => ({ ...record, doubted: time }))
  }

  /**
   * A newer backup replaces the deal.
   * @param time ms since 1970
   */
  setRetired(dealCid: string, time: number): Promise<DealRecord | undefined> {
    return this.#change(dealCid, (record) => ({ ...record, retired: time }))
  }

  /** Closes a deal whose state is final and has been acted on, or that is retired. */
  close(dealCid: string): Promise<void> {
    return this.#open.delete(cidKey(dealCid))
  }

  #change(dealCid: string, to: (record: DealRecord) => DealRecord): Promise<DealRecord | undefined> {
    return this.#alone(dealCid, () => this.#deals.change(cidKey(dealCid), (known) => known && to(known)))
  }

  #addToSubject({ bucket, key, deal: { dealCid } }: DealRecord): Promise<void> {
    const name = subjectKey(bucket, key)
    return this.#state.locks.withName(`deal-subject/${name}`, async () => {
      await this.#subjects.change(name, (subject) => {
        const deals = subject?.deals ?? []
        if (deals.includes(dealCid)) return subject
        return { bucket, key, deals: [...deals, dealCid].slice(-MAX_OF_SUBJECT) }
      })
    })
  }

  #alone<T>(dealCid: string, run: () => Promise<T>): Promise<T> {
    return this.#state.locks.withName(`deal/${cidKey(dealCid)}`, run)
  }
}

/** A CID as it is; any other text that a gateway reports as one is hashed. */
function cidKey(dealCid: string): string {
  return /^[A-Za-z0-9]{1,128}$/.test(dealCid) ? dealCid : hash(dealCid)
}

/**
 * Hashed, because keys of S3 are longer than some stores accept. A bucket name holds no NUL, so that no two pairs give
 * the same text.
 */
function subjectKey(bucket: string, key: string | undefined): string {
  return hash(key === undefined ? bucket : `${bucket}\0${key}`)
}

function hash(text: string): string {
  return createHash('sha256').update(text).digest('base64url')
}
