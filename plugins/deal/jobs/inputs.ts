import type { OfflineTerms } from '../terms/offline-terms.js'
import type { DealTerms } from '../terms/terms.js'

export const OBJECT_DEAL = 'deal:CreateObjectDeal'

export const BUCKET_DEAL = 'deal:CreateBucketDeal'

export const OFFLINE_DEAL = 'deal:CreateBucketOfflineDeal'

export const RETRIEVE_BUCKET = 'deal:RetrieveBucket'

export const RUN_SCHEDULE = 'deal:RunSchedule'

/**
 * Origin of a deal: a call, the storage class that an object was stored in, or a lifecycle rule, renewal or schedule
 * that the server carries out by itself.
 */
export type DealCause = 'call' | 'class' | 'lifecycle' | 'schedule'

/** The backup of a schedule that a deal belongs to. */
export interface Generation {
  readonly schedule: string
  /** When the backup was due, ms since 1970. */
  readonly due: number
}

/** Input of the job `deal:CreateObjectDeal`. */
export interface ObjectDealInput {
  readonly bucket: string
  readonly key: string
  /**
   * Revision of the object, under the name that stored jobs have, as far as it is known. If another object is there
   * when the job starts, the job fails with PreconditionFailed.
   */
  readonly stamp?: string
  readonly etag?: string
  readonly terms: DealTerms
  readonly priceConfirmed?: true
  /** The client wants the deal although the gateway may have the same one already. */
  readonly force?: true
  readonly cause: DealCause
  readonly generation?: Generation
  /**
   * The end of the lock for which a deal is renewed, ms since 1970; null while a legal hold is on.
   */
  readonly lockedUntil?: number | null
}

export interface BucketDealInput {
  readonly bucket: string
  readonly terms: DealTerms
  readonly priceConfirmed?: true
  /** The client wants the deal although the gateway may have the same one already. */
  readonly force?: true
  readonly cause: DealCause
  readonly generation?: Generation
}

export type DealInput = BucketDealInput | ObjectDealInput

export interface OfflineDealInput {
  readonly bucket: string
  /** Prefix of the objects. */
  readonly prefix?: string
  readonly terms: OfflineTerms
  readonly cause: 'call' | 'class' | 'schedule'
  readonly generation?: Generation
}

export interface RunScheduleInput {
  readonly bucket: string
  readonly prefix: string
  /** An object needs all of them. */
  readonly tags: readonly { readonly Key: string; readonly Value: string }[]
  readonly generation: Generation
}

export interface RetrieveBucketInput {
  readonly bucket: string
  readonly prefix: string
  /** Days for which restored objects stay; 0: permanently. */
  readonly days: number
  readonly tier: 'Standard' | 'Bulk' | 'Expedited'
}
