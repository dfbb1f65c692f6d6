import type { Job } from 'dealgate'
import type { DealParts } from '../parts.js'
import type { DealRecord } from './deal-record.js'
import type { BucketDealInput, ObjectDealInput } from './inputs.js'

type DealJob = Pick<Job<BucketDealInput | ObjectDealInput>, 'id' | 'input'>

/** The deal of a job, if it is on record: it may have been found while an operator retried or resolved the job. */
export async function madeBefore({ deals }: DealParts, { id, input }: DealJob): Promise<DealRecord | undefined> {
  const about = await deals.of(input.bucket, 'key' in input ? input.key : undefined)
  return about.find(({ jobId }) => jobId === id)
}

/**
 * True for a job that failed or was cancelled, and for which no deal was made. False for a job that is no longer on
 * record, and for one that was cancelled while an attempt is unsettled: an operator retried the unknown job and
 * cancelled it before it ran.
 */
export async function endedInVain(parts: DealParts, jobId: string): Promise<boolean> {
  const job = await parts.jobs.get(jobId)
  if (job?.status !== 'Failed' && job?.status !== 'Cancelled') return false
  // Other plugins spend from the same ledger.
  if (!job.operation.startsWith('deal:')) return false
  if (await parts.tasks.get(jobId)) return false
  if (job.status === 'Cancelled' && (await parts.attempts.get(jobId))) return false
  return (await madeBefore(parts, job as DealJob)) === undefined
}
