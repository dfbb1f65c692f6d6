import type { Job } from '../../../src/jobs/job.js'
import type { DealParts } from '../parts.js'
import type { DealRecord } from '../records/deal-record.js'
import type { BucketDealInput, ObjectDealInput } from './inputs.js'

type DealJob = Pick<Job<BucketDealInput | ObjectDealInput>, 'id' | 'input'>

/** The deal of a job, if it is on record: it may have been found while somebody had the job run again, or said what became of it. */
export async function madeBefore({ deals }: DealParts, { id, input }: DealJob): Promise<DealRecord | undefined> {
  const about = await deals.of(input.bucket, 'key' in input ? input.key : undefined)
  return about.find(({ jobId }) => jobId === id)
}

/** True for the job of a deal that failed or was cancelled, and that no deal was made for. False for one that is not on record any more. */
export async function endedInVain(parts: DealParts, jobId: string): Promise<boolean> {
  const job = await parts.jobs.get(jobId)
  if (job?.status !== 'Failed' && job?.status !== 'Cancelled') return false
  return (await madeBefore(parts, job as DealJob)) === undefined
}
