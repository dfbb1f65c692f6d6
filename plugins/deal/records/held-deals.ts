import type { Job, StoredObject } from 'dealgate/plugin'
import type { DealDeps } from '../deps.js'
import type { DealInput } from '../jobs/inputs.js'
import { type DealRecord, holds } from './deal-record.js'
import type { Version } from './deal-records.js'

/** Deals that hold exactly this object, as far as is known; oldest first. Deals of old backups are left out. */
export async function dealsHolding(deps: DealDeps, subject: Version): Promise<readonly DealRecord[]> {
  return (await everyDealHolding(deps, subject)).filter(({ retired }) => retired === undefined)
}

/** Deals that hold this object, also those of old backups, whose state is no longer queried: they may still deliver. */
export async function everyDealHolding({ deals }: DealDeps, version: Version): Promise<readonly DealRecord[]> {
  return (await deals.ofVersion(version)).filter(holds)
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

/** True for an object that the next offline deal of its bucket may hold: such deals have current objects alone. */
export async function isCurrent({ host }: Pick<DealDeps, 'host'>, object: StoredObject): Promise<boolean> {
  const { bucket, key, revision, versionId } = object
  return versionId === undefined || (await host.own.store.find(bucket, key))?.revision === revision
}

/** True for a job that may still make its deal. */
export async function isUnderWay({ jobs }: DealDeps, jobId: string): Promise<boolean> {
  const job = await jobs.get(jobId)
  return job !== undefined && !['Complete', 'Failed', 'Cancelled'].includes(job.status)
}

type DealJob = Pick<Job<DealInput>, 'id' | 'input'>

/** The deal of a job, if it is on record: it may have been found while an operator retried or resolved the job. */
export async function madeBefore({ deals }: DealDeps, { id, input }: DealJob): Promise<DealRecord | undefined> {
  const about = await deals.of(input.bucket, 'key' in input ? input.key : undefined)
  return about.find(({ jobId }) => jobId === id)
}

/**
 * True for a job that failed or was cancelled, and for which no deal was made. False for a job that is no longer on
 * record, and for one that was cancelled while an attempt is unsettled: an operator retried the unknown job and
 * cancelled it before it ran.
 */
export async function endedInVain(deps: DealDeps, jobId: string): Promise<boolean> {
  const job = await deps.jobs.get(jobId)
  if (job?.status !== 'Failed' && job?.status !== 'Cancelled') return false
  // Other plugins spend from the same ledger.
  if (!job.operation.startsWith('deal:')) return false
  if (await deps.tasks.get(jobId)) return false
  if (job.status === 'Cancelled' && (await deps.attempts.get(jobId))) return false
  return (await madeBefore(deps, job as DealJob)) === undefined
}
