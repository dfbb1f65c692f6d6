import type { GatewayDeal } from '../deal-wire.js'
import type { DealCause, Generation } from './inputs.js'

/** A deal that was made through this server. Plain JSON. */
export interface DealRecord {
  /** Absent for an online deal, which holds one object or bucket: its CID. A deal of a task has a record per object. */
  readonly id?: string
  readonly bucket: string
  /** Absent for a deal about the whole bucket. */
  readonly key?: string
  /** Stamp of the object that it holds. */
  readonly stamp?: string
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
  /** Last known state on the network. */
  readonly live?: LiveState
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
  /** When it was given up for newer backups, ms since 1970: its state is no longer queried. */
  readonly retired?: number
}

export interface LiveState {
  /** State name of go-fil-markets. */
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
export function holds(record: DealRecord): boolean {
  return !isFinal(record.live?.state)
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
