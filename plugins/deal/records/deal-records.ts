import { createHash } from 'node:crypto'
import { type PluginState, type Records, renamedMember } from 'dealgate/plugin'
import type { GatewayDeal } from '../deal-client.js'
import type { DealCause, Generation } from '../jobs/inputs.js'
import { Sequence } from './sequence.js'

/** CIDs of the deals of one object or bucket, oldest first. */
interface SubjectRecord {
  readonly bucket: string
  readonly key?: string
  readonly deals: readonly string[]
}

/** Most deals that are listed by object or bucket; older ones are still found by their CID. */
const MAX_OF_SUBJECT = 1000

/** Most states that are kept of a deal: a network has about twenty, which most deals pass once. */
const MAX_STATES = 50

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

  /** As `of`, for each of many objects, in their order; reads the state twice. */
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

/** The states that the network has reported of a deal, oldest first, as far as they are on record. */
export function statesOf({ states, live }: Pick<DealRecord, 'states' | 'live'>): readonly ReportedState[] {
  return states ?? (live ? withState([], live) : [])
}

function withState(states: readonly ReportedState[], { state, message, asked }: LiveState): readonly ReportedState[] {
  if (states.at(-1)?.state === state) return states
  return [...states, { state, since: asked, ...(message && { message }) }].slice(-MAX_STATES)
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

/** The same for a version. The text begins with a NUL, as that of no bucket and key does. */
export function versionKey({ bucket, key, revision }: Version): string {
  return hash(`\0${bucket}\0${revision}\0${key}`)
}

function hash(text: string): string {
  return createHash('sha256').update(text).digest('base64url')
}

/** A deal that was made through this server. Plain JSON. */
export interface DealRecord {
  /** Absent for an online deal, which holds one object or bucket: its CID. A deal of a task has a record per object. */
  readonly id?: string
  readonly bucket: string
  /** Absent for a deal about the whole bucket. */
  readonly key?: string
  /** Revision of the object that it holds. */
  readonly revision?: string
  /** As the gateway reported it when it was made. */
  readonly deal: GatewayDeal
  readonly jobId: string
  readonly cause: DealCause
  /** Its price was confirmed, which also holds for its renewal. */
  readonly priceConfirmed?: true
  /** Access key of the gateway account that made it; '' for the server's own. */
  readonly account: string
  /** ms since 1970. */
  readonly made: number
  readonly live?: LiveState
  /** Absent in records of earlier versions, see `statesOf`. */
  readonly states?: readonly ReportedState[]
  /** Id of the job that renews this deal. */
  readonly renewedBy?: string
  /** When the whole object was retrieved from this deal and found identical, ms since 1970. */
  readonly verified?: number
  /** When the last verification failed, ms since 1970. */
  readonly doubted?: number
  /** UUID of the task of an offline deal. */
  readonly taskUuid?: string
  /** The backup of a schedule that it belongs to. */
  readonly generation?: Generation
  /** The lock, beyond the end of the deal, of the version whose only bytes it has. */
  readonly lock?: {
    /** ms since 1970; null while a legal hold is on. */
    readonly until: number | null
    /** Code of the error that keeps the deal from being renewed. */
    readonly failed?: string
  }
  /** When it was given up for newer backups, ms since 1970: its state is no longer queried. */
  readonly retired?: number
}

/** A state when it was first reported. */
interface ReportedState {
  readonly state: string
  readonly message?: string
  /** ms since 1970. */
  readonly since: number
}

export interface LiveState {
  readonly state: string
  readonly message?: string
  readonly pieceCid?: string
  /** Bytes. */
  readonly pieceSize?: number
  readonly startEpoch?: number
  readonly endEpoch?: number
  /** ms since 1970. */
  readonly expires?: number
  /** From its start to its end, ms. */
  readonly lasts?: number
  /** When the gateway was asked, ms since 1970. */
  readonly asked: number
}

/**
 * Final states of go-fil-markets: https://github.com/filecoin-project/go-fil-markets/blob/master/storagemarket/types.go
 */
const FINAL = new Set([
  'StorageDealExpired',
  'StorageDealSlashed',
  'StorageDealError',
  'StorageDealFailing',
  'StorageDealRejecting',
  'StorageDealProposalRejected',
  'StorageDealProposalNotFound',
])

export function isFinal(state: string | undefined): boolean {
  return state !== undefined && FINAL.has(state)
}

/** False for a deal that certainly holds nothing, or no longer. */
export function holds({ live }: Pick<DealRecord, 'live'>): boolean {
  return !isFinal(live?.state)
}

/** True when an object may be left to the deal alone. */
export function isVerified(record: DealRecord): boolean {
  return holds(record) && record.verified !== undefined
}

/** True when the last verification of the deal failed. */
export function isDoubted({ verified, doubted }: DealRecord): boolean {
  return verified === undefined && doubted !== undefined
}

/** Under which a deal is on record. */
export function idOf({ id, deal }: Pick<DealRecord, 'id' | 'deal'>): string {
  return id ?? deal.dealCid
}

/**
 * Active deals change rarely. Longest pause between two queries of an active deal, ms, and the least number of queries
 * in its life and in its last part.
 */
const ACTIVE_MS = 6 * 3_600_000
const LOOKS_IN_LIFE = 20
const LOOKS_AT_END = 8

/** Fraction of a deal's life that counts as its last part. */
const END = 1 / 10

/**
 * When the last `days` days of a deal begin, or the last part of its life if that is shorter, ms since 1970. Undefined
 * while the end is not known.
 */
export function endBegins({ live }: DealRecord, days: number): number | undefined {
  if (live?.expires === undefined || live.lasts === undefined) return undefined
  return live.expires - Math.min(days * 86_400_000, live.lasts * END)
}

/** True when the state of the deal is to be queried at `now`, ms since 1970. */
export function isDue(record: DealRecord, now: number, days: number): boolean {
  const { live } = record
  if (live?.state !== 'StorageDealActive') return true
  const end = endBegins(record, days)
  const { asked, expires, lasts } = live
  if (end === undefined || expires === undefined || lasts === undefined) return now >= asked + ACTIVE_MS
  if (asked >= expires) return true
  const [next, span] = asked < end ? [end, lasts / LOOKS_IN_LIFE] : [expires, (expires - end) / LOOKS_AT_END]
  return now >= Math.min(next, asked + Math.min(ACTIVE_MS, span))
}
