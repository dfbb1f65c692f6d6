import type { StoredObject } from 'dealgate'
import type { DealDeps } from '../deps.js'
import { type DealRecord, holds } from './deal-records.js'

type Subject = Pick<StoredObject, 'bucket' | 'key' | 'stamp'>

/** Deals that hold exactly this object, as far as is known; oldest first. Deals of old backups are left out. */
export async function dealsHolding(deps: DealDeps, subject: Subject): Promise<readonly DealRecord[]> {
  return (await everyDealHolding(deps, subject)).filter(({ retired }) => retired === undefined)
}

/** The same with the deals of old backups, whose state is no longer queried: they may still deliver. */
export async function everyDealHolding(
  { deals }: DealDeps,
  { bucket, key, stamp }: Subject,
): Promise<readonly DealRecord[]> {
  return (await deals.of(bucket, key)).filter((deal) => deal.stamp === stamp && holds(deal))
}

/**
 * The job of a deal that holds the object, or is about to: a second deal would be paid for twice. Undefined when there
 * is none.
 */
export async function dealOf(deps: DealDeps, object: StoredObject): Promise<{ readonly jobId: string } | undefined> {
  const holding = (await dealsHolding(deps, object)).at(-1)
  if (holding) return { jobId: holding.jobId }
  const jobId = object.archive?.jobId
  return jobId !== undefined && (await isUnderWay(deps, jobId)) ? { jobId } : undefined
}

/** True for a job that may still make its deal. */
export async function isUnderWay({ jobs }: DealDeps, jobId: string): Promise<boolean> {
  const job = await jobs.get(jobId)
  return job !== undefined && !['Complete', 'Failed', 'Cancelled'].includes(job.status)
}
