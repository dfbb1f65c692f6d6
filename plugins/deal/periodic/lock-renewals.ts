import type { Job, S3Error, StoredObject } from 'dealgate/plugin'
import type { DealDeps } from '../deps.js'
import { WAITING } from '../jobs/budget-waits.js'
import { type DealRecord, idOf } from '../records/deal-record.js'

/**
 * Days before its end at which the deal of a locked version is renewed at the latest: beyond those within which its
 * bytes come back instead, and time for repetitions.
 */
export const LOCK_DAYS = 30

/**
 * The end of a lock that keeps a version beyond this time, ms since 1970; null for a legal hold, which has no end.
 * Undefined for a version that is free then.
 */
export function lockBeyond({ lock }: Pick<StoredObject, 'lock'>, time: number): number | null | undefined {
  if (lock?.hold) return null
  return lock?.until !== undefined && lock.until > time ? lock.until : undefined
}

interface Renewal {
  /** See `lockBeyond`. */
  readonly until: number | null
  /** Absent for a renewal that has no job of its own. */
  readonly job?: Job | undefined
  /** Why there is no job. */
  readonly error?: S3Error
}

interface Failure {
  readonly code: string
  readonly message: string
}

/**
 * Records with a deal how its renewal for a lock stands; undefined for one that needs none, or has it. A failure is in
 * the history of the object, in the log each time, and counts in the gauge `lock_renewals` until it is mended.
 */
export async function noteRenewal(deps: DealDeps, record: DealRecord, renewal: Renewal | undefined): Promise<void> {
  const { deals, events, host } = deps
  const { bucket, key, revision, deal } = record
  if (!renewal) {
    if (record.lock) await deals.setLock(idOf(record), undefined)
    return
  }
  const { until, job } = renewal
  const failure = failureOf(renewal)
  const known = record.lock
  if (known?.until !== until || known.failed !== failure?.code)
    await deals.setLock(idOf(record), { until, ...(failure && { failed: failure.code }) })
  if (!failure || key === undefined || revision === undefined) return
  host.log.error(
    { bucket, key, deal: deal.dealCid, job: job?.id, ...failure, lockedUntil: until },
    'the deal that has the only bytes of a locked version is not renewed yet: they come back here before it ends',
  )
  await events.add(
    { bucket, key },
    {
      ...{ id: `${deal.dealCid}/${job?.id}/${job?.retries ?? 0}/${failure.code}`, event: 'RenewalFailed', revision },
      ...{ account: '', by: '', dealCid: deal.dealCid, ...failure, ...(job && { jobId: job.id }) },
    },
  )
}

function failureOf({ job, error }: Renewal): Failure | undefined {
  if (error) return { code: error.code, message: error.message }
  if (!job) return undefined
  if (job.status === 'Failed') return job.failure ?? { code: job.status, message: `The job ${job.id} has failed.` }
  if (job.status === 'Cancelled' || job.status === 'Unknown')
    return { code: job.status, message: `The outcome of the job ${job.id} is ${job.status}.` }
  const isPutOff = job.status === 'Active' && job.progress.phase === WAITING
  return isPutOff ? { code: 'SpendCapReached', message: 'The renewal waits for the budget of another day.' } : undefined
}
