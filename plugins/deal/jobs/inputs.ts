import type { DealTerms } from '../terms.js'

/** Name of the job that makes a deal about one object, and of the call that asks for it. */
export const OBJECT_DEAL = 'deal:CreateObjectDeal'
export const BUCKET_DEAL = 'deal:CreateBucketDeal'
export const RETRIEVE_BUCKET = 'deal:RetrieveBucket'

/** Who wants the deal: a call, the storage class that an object was stored in, or a rule of the bucket that the server carries out by itself. */
export type DealCause = 'call' | 'class' | 'lifecycle'

/** Of job `deal:CreateObjectDeal`. */
export interface ObjectDealInput {
  readonly bucket: string
  readonly key: string
  /** The object that is meant, as far as it is known; another one that is there when the job begins fails it with PreconditionFailed. */
  readonly stamp?: string
  readonly etag?: string
  readonly terms: DealTerms
  readonly cause: DealCause
}

/** Of job `deal:CreateBucketDeal`. */
export interface BucketDealInput {
  readonly bucket: string
  readonly terms: DealTerms
  readonly cause: DealCause
}

/** Of job `deal:RetrieveBucket`. */
export interface RetrieveBucketInput {
  readonly bucket: string
  readonly prefix: string
  /** For how long restored objects stay; 0: for good. */
  readonly days: number
  readonly tier: 'Standard' | 'Bulk' | 'Expedited'
}
