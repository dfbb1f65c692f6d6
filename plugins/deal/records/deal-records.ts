import { createHash } from 'node:crypto'
import type { Records, State } from '../../../src/state/state.js'
import { type DealRecord, isFinal, type LiveState } from './deal-record.js'
import { Sequence } from './sequence.js'

/** Deals of one object or bucket, oldest first: their CIDs. */
interface Subject {
  readonly bucket: string
  readonly key?: string
  readonly deals: readonly string[]
}

/** Deals about one object are remembered together up to so many; of more the oldest are still found by their CID. */
const MAX_OF_SUBJECT = 1000

/** Every deal that was made through this server. All methods throw ServiceUnavailable. */
export class DealRecords {
  readonly #state: Pick<State, 'records' | 'locks'>
  readonly #deals: Records<DealRecord>
  readonly #subjects: Records<Subject>
  /** CIDs of deals that are not closed. */
  readonly #open: Records<true>
  readonly #order: Sequence

  constructor(state: Pick<State, 'records' | 'locks'>) {
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
   * Remembers a deal for the job that made it; durable when it resolves, and the same again changes nothing. Resolves false, remembering nothing, when the deal is
   * another job's.
   */
  remember(record: DealRecord): Promise<boolean> {
    const { dealCid } = record.deal
    return this.#alone(dealCid, async () => {
      const known = await this.get(dealCid)
      if (known && known.jobId !== record.jobId) return false
      // What leads to a deal before the deal: a process that dies in between is told to remember it again.
      await this.#order.add(dealCid)
      await this.#addToSubject(record)
      if (!isFinal((known ?? record).live?.state)) await this.#open.set(cidKey(dealCid), true)
      if (!known) await this.#deals.set(cidKey(dealCid), record)
      return true
    })
  }

  /** Deals about an object, or without key about a bucket as a whole, oldest first. */
  async of(bucket: string, key: string | undefined): Promise<readonly DealRecord[]> {
    const subject = await this.#subjects.get(subjectKey(bucket, key))
    const deals = await Promise.all((subject?.deals ?? []).map((dealCid) => this.get(dealCid)))
    return deals.filter((deal) => deal !== undefined)
  }

  /**
   * All of them, the newest first, each with its place in their order. Memory does not grow with their number.
   * @param before only those at places less than this
   */
  async *newestFirst(before?: number): AsyncGenerator<[place: number, record: DealRecord], void> {
    for await (const [place, dealCid] of this.#order.backwards(before)) {
      const deal = await this.get(dealCid)
      if (deal) yield [place, deal]
    }
  }

  /** Those whose state may still change, or something may follow from it, in no order. */
  async *open(): AsyncGenerator<DealRecord, void> {
    for await (const [key] of this.#open.entries()) {
      const deal = await this.#deals.get(key)
      if (deal) yield deal
    }
  }

  /** What the network says of it now. Resolves with the record as it is then. */
  setLive(dealCid: string, live: LiveState): Promise<DealRecord | undefined> {
    return this.#change(dealCid, (record) => ({ ...record, live }))
  }

  setRenewedBy(dealCid: string, jobId: string): Promise<DealRecord | undefined> {
    return this.#change(dealCid, (record) => ({ ...record, renewedBy: jobId }))
  }

  /** Its state does not change any more, and all that follows from it was done: it is not among the open ones from now on. */
  close(dealCid: string): Promise<void> {
    return this.#open.delete(cidKey(dealCid))
  }

  #change(dealCid: string, to: (record: DealRecord) => DealRecord): Promise<DealRecord | undefined> {
    return this.#alone(dealCid, async () => {
      const known = await this.get(dealCid)
      if (!known) return undefined
      const changed = to(known)
      await this.#deals.set(cidKey(dealCid), changed)
      return changed
    })
  }

  #addToSubject({ bucket, key, deal: { dealCid } }: DealRecord): Promise<void> {
    const name = subjectKey(bucket, key)
    return this.#state.locks.withName(`deal-subject/${name}`, async () => {
      const deals = (await this.#subjects.get(name))?.deals ?? []
      if (deals.includes(dealCid)) return
      await this.#subjects.set(name, { bucket, key, deals: [...deals, dealCid].slice(-MAX_OF_SUBJECT) })
    })
  }

  #alone<T>(dealCid: string, run: () => Promise<T>): Promise<T> {
    return this.#state.locks.withName(`deal/${cidKey(dealCid)}`, run)
  }
}

/** A CID as it is; what else a gateway may have told as one under its hash. */
function cidKey(dealCid: string): string {
  return /^[A-Za-z0-9]{1,128}$/.test(dealCid) ? dealCid : hash(dealCid)
}

/** Keys of S3 are longer than some stores take. A bucket name holds no NUL, so no two pairs give one text. */
function subjectKey(bucket: string, key: string | undefined): string {
  return hash(key === undefined ? bucket : `${bucket}\0${key}`)
}

function hash(text: string): string {
  return createHash('sha256').update(text).digest('base64url')
}
