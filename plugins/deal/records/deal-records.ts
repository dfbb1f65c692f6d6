import { createHash } from 'node:crypto'
import { type PluginState, type Records, renamedMember } from 'dealgate/plugin'
import { type DealRecord, idOf, isFinal, type LiveState, statesOf, withState } from './deal-record.js'
import { Sequence } from './sequence.js'

/** CIDs of the deals of one object or bucket, oldest first. */
interface SubjectRecord {
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
  readonly #subjects: Records<SubjectRecord>
  /** CIDs of deals that are not closed. */
  readonly #open: Records<true>
  readonly #order: Sequence

  constructor(state: Pick<PluginState, 'records' | 'locks'>) {
    this.#state = state
    this.#deals = renamedMember(state.records('deals'), 'revision', 'stamp')
    this.#subjects = state.records('deal-subjects')
    this.#open = state.records('deals-open')
    this.#order = new Sequence(state, 'deal-order')
  }

  get(id: string): Promise<DealRecord | undefined> {
    return this.#deals.get(cidKey(id))
  }

  /**
   * Records a deal for the job that made it. Durable when it resolves; idempotent. Resolves false, and records nothing,
   * when the deal belongs to another job.
   */
  remember(record: DealRecord): Promise<boolean> {
    const id = idOf(record)
    return this.#alone(id, async () => {
      const known = await this.get(id)
      if (known && known.jobId !== record.jobId) return false
      // The indexes are written before the deal: after a crash in between, the deal is recorded again.
      await this.#order.add(id)
      await this.#addToSubjects(record)
      if (!isFinal((known ?? record).live?.state)) await this.#open.set(cidKey(id), true)
      if (!known) await this.#deals.set(cidKey(id), record)
      return true
    })
  }

  /** Deals for an object, or without key for a bucket as a whole, oldest first. */
  async of(bucket: string, key: string | undefined): Promise<readonly DealRecord[]> {
    return this.#read(await this.#subjects.get(subjectKey(bucket, key)))
  }

  /** Deals for one version of an object, oldest first. */
  async ofVersion(version: Version): Promise<readonly DealRecord[]> {
    const subject = await this.#subjects.get(versionKey(version))
    if (subject) return this.#read(subject)
    // Earlier releases listed them by key alone.
    return (await this.of(version.bucket, version.key)).filter(({ revision }) => revision === version.revision)
  }

  /** The deals of many objects, in the order of the objects; reads the state twice. */
  async ofMany(objects: readonly { readonly bucket: string; readonly key: string }[]): Promise<DealRecord[][]> {
    const subjects = await this.#subjects.getMany(objects.map(({ bucket, key }) => subjectKey(bucket, key)))
    const ids = [...new Set(subjects.flatMap((subject) => subject?.deals ?? []))]
    const records = await this.#deals.getMany(ids.map(cidKey))
    const byId = new Map(ids.map((id, i) => [id, records[i]]))
    return subjects.map((subject) =>
      (subject?.deals ?? []).map((id) => byId.get(id)).filter((deal) => deal !== undefined),
    )
  }

  /**
   * All deals, newest first, each with its place in their order. Memory does not grow with their number.
   * @param before only deals at lower places
   */
  async *newestFirst(before?: number): AsyncGenerator<[place: number, record: DealRecord], void> {
    for await (const [place, id] of this.#order.backwards(before)) {
      const deal = await this.get(id)
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
  setLive(id: string, live: LiveState): Promise<DealRecord | undefined> {
    return this.#change(id, (record) => ({ ...record, live, states: withState(statesOf(record), live) }))
  }

  setRenewedBy(id: string, jobId: string): Promise<DealRecord | undefined> {
    return this.#change(id, (record) => ({ ...record, renewedBy: jobId }))
  }

  /**
   * The whole object was retrieved from the deal and found identical.
   * @param time ms since 1970
   */
  setVerified(id: string, time: number): Promise<DealRecord | undefined> {
    return this.#change(id, ({ doubted: _, ...record }) => ({ ...record, verified: time }))
  }

  /**
   * The deal did not deliver the object.
   * @param time ms since 1970
   */
  setDoubted(id: string, time: number): Promise<DealRecord | undefined> {
    return this.#change(id, (record) => ({ ...record, doubted: time }))
  }

  /**
   * A newer backup replaces the deal.
   * @param time ms since 1970
   */
  setRetired(id: string, time: number): Promise<DealRecord | undefined> {
    return this.#change(id, (record) => ({ ...record, retired: time }))
  }

  /** Records how its renewal for a lock stands; undefined for none. */
  setLock(id: string, lock: DealRecord['lock'] | undefined): Promise<DealRecord | undefined> {
    return this.#change(id, ({ lock: _, ...record }) => ({ ...record, ...(lock && { lock }) }))
  }

  /** Closes a deal whose state is final and has been acted on, or that is retired. */
  close(id: string): Promise<void> {
    return this.#open.delete(cidKey(id))
  }

  #change(id: string, to: (record: DealRecord) => DealRecord): Promise<DealRecord | undefined> {
    return this.#alone(id, () => this.#deals.change(cidKey(id), (known) => known && to(known)))
  }

  async #read(subject: SubjectRecord | undefined): Promise<readonly DealRecord[]> {
    const deals = await Promise.all((subject?.deals ?? []).map((id) => this.get(id)))
    return deals.filter((deal) => deal !== undefined)
  }

  async #addToSubjects(record: DealRecord): Promise<void> {
    const { bucket, key, revision } = record
    if (key !== undefined && revision !== undefined) {
      const version = { bucket, key, revision }
      await this.#addTo(versionKey(version), record, (await this.ofVersion(version)).map(idOf))
    }
    await this.#addTo(subjectKey(bucket, key), record, [])
  }

  /** @param before the deals of a subject that is not on record */
  #addTo(name: string, record: DealRecord, before: readonly string[]): Promise<void> {
    const { bucket, key } = record
    return this.#state.locks.withName(`deal-subject/${name}`, async () => {
      await this.#subjects.change(name, (subject) => {
        const deals = subject?.deals ?? before
        if (subject && deals.includes(idOf(record))) return subject
        const others = deals.filter((id) => id !== idOf(record))
        return { bucket, key, deals: [...others, idOf(record)].slice(-MAX_OF_SUBJECT) }
      })
    })
  }

  #alone<T>(id: string, run: () => Promise<T>): Promise<T> {
    return this.#state.locks.withName(`deal/${cidKey(id)}`, run)
  }
}

/** A CID as it is; any other text that a gateway reports as one is hashed. */
function cidKey(id: string): string {
  return /^[A-Za-z0-9]{1,128}$/.test(id) ? id : hash(id)
}

/**
 * Hashed, because keys of S3 are longer than some stores accept. A bucket name holds no NUL, so that no two pairs give
 * the same text.
 */
export function subjectKey(bucket: string, key: string | undefined): string {
  return hash(key === undefined ? bucket : `${bucket}\0${key}`)
}

/** A version of an object: the one whose bytes have this revision. */
export interface Version {
  readonly bucket: string
  readonly key: string
  readonly revision: string
}

/** Key of a version in the records. The text of its hash begins with a NUL, as that of no bucket and key does. */
export function versionKey({ bucket, key, revision }: Version): string {
  return hash(`\0${bucket}\0${revision}\0${key}`)
}

function hash(text: string): string {
  return createHash('sha256').update(text).digest('base64url')
}
