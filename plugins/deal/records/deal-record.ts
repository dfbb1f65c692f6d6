import type { GatewayDeal } from '../deal-answers.js'
import type { DealCause, Generation } from '../jobs/inputs.js'

/** Most states that are kept of a deal: a network has about twenty, which most deals pass once. */
const MAX_STATES = 50

/** A deal that was made through this server. Plain JSON. */
export interface DealRecord {
  /** Absent for an online deal, which holds one object or bucket: its CID. A deal of a task has a record per object. */
  readonly id?: string
  readonly bucket: string
  /** Absent for a deal about the whole bucket. */
  readonly key?: string
  /** Revision of the object that it holds. */
  readonly revision?: string
  /** The deal as the gateway reported it when it was made. */
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

/** The id under which a deal is on record. */
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

/** The states that the network has reported of a deal, oldest first, as far as they are on record. */
export function statesOf({ states, live }: Pick<DealRecord, 'states' | 'live'>): readonly ReportedState[] {
  return states ?? (live ? withState([], live) : [])
}

/** Adds a state if it is another one than the last. */
export function withState(
  states: readonly ReportedState[],
  { state, message, asked }: LiveState,
): readonly ReportedState[] {
  if (states.at(-1)?.state === state) return states
  return [...states, { state, since: asked, ...(message && { message }) }].slice(-MAX_STATES)
}
