import type { DealTerms } from '../terms/terms.js'

/** Name of the job that makes a deal for one object, and of the call that requests it. */
export const OBJECT_DEAL = 'deal:CreateObjectDeal'
export const BUCKET_DEAL = 'deal:CreateBucketDeal'
export const RETRIEVE_BUCKET = 'deal:RetrieveBucket'

/**
 * Origin of a deal: a call, the storage class that an object was stored in, or a lifecycle rule or renewal that the
 * server carries out by itself.
 */
export type DealCause = 'call' | 'class' | 'lifecycle'

/** Of job `deal:CreateObjectDeal`. */
export interface ObjectDealInput {
  readonly bucket: string
  readonly key: string
  /**
   * The object, as far as it is known. If another object is there when the job starts, the job fails with
   * PreconditionFailed.
   */
  readonly stamp?: string
  readonly etag?: string
  readonly terms: DealTerms
  readonly priceConfirmed?: true
  readonly cause: DealCause
}

/** Of job `deal:CreateBucketDeal`. */
export interface BucketDealInput {
  readonly bucket: string
  readonly terms: DealTerms
  readonly priceConfirmed?: true
  readonly cause: DealCause
}

/** Of job `deal:RetrieveBucket`. */
export interface RetrieveBucketInput {
  readonly bucket: string
  readonly prefix: string
  /** Days for which restored objects stay; 0: permanently. */
  readonly days: number
  readonly tier: 'Standard' | 'Bulk' | 'Expedited'
}
