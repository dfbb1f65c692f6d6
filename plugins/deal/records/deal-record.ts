import type { GatewayDeal } from '../deal-wire.js'
import type { DealCause } from '../jobs/inputs.js'

/** A deal that was made through this server. Plain JSON. */
export interface DealRecord {
  readonly bucket: string
  /** Absent for a deal about the whole bucket. */
  readonly key?: string
  /** Of the object that it holds. */
  readonly stamp?: string
  /** As the gateway told it when it was made. */
  readonly deal: GatewayDeal
  readonly jobId: string
  readonly cause: DealCause
  /** Access key of the gateway account that made it; '' for the server's own. */
  readonly account: string
  /** ms since 1970. */
  readonly made: number
  /** What the network says of it, as far as it was asked. */
  readonly live?: LiveState
  /** The job that made the deal which follows this one before it ends. */
  readonly renewedBy?: string
}

export interface LiveState {
  /** One of the words of go-fil-markets. */
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

/** Of go-fil-markets' states those from which there is no way on: https://github.com/filecoin-project/go-fil-markets/blob/master/storagemarket/types.go */
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

/** False for a deal that surely holds nothing (any more). */
export function holds(record: DealRecord): boolean {
  return !isFinal(record.live?.state)
}
