import { S3Error } from '../../../common/errors/s3-error.js'
import type { JobFailure } from '../job.js'
import { ended, hasEnded, type JobRecord, plain, released, renewed, withStatus } from './record.js'

// What a job becomes by a request of a client. Each function throws InvalidRequest in a state that does not allow it.

/** @param running the job may be running, here or at another proxy, and has to be interrupted first */
export function cancelled(record: JobRecord, running: boolean): JobRecord {
  const { status } = record.job
  if (status === 'Cancelled' || status === 'Cancelling') return record
  if (hasEnded(status)) throw refused(record, `has ended: ${status}`)
  if (record.committed || status === 'Unknown') throw refused(record, 'has already sent something irrevocable')
  return running ? withStatus(record, 'Cancelling') : ended(record, { status: 'Cancelled' })
}

export function retried(record: JobRecord): JobRecord {
  const { status } = record.job
  if (status === 'Failed' || status === 'Cancelled' || status === 'Unknown') return renewed(record)
  throw refused(record, `is ${status}: only a failed, cancelled or unknown job can run again`)
}

export function resolved(
  record: JobRecord,
  outcome: { readonly result: unknown } | { readonly failure: JobFailure },
): JobRecord {
  if (record.job.status !== 'Unknown') throw refused(record, `is ${record.job.status}, not Unknown`)
  return 'failure' in outcome
    ? ended(record, { status: 'Failed', failure: outcome.failure })
    : ended(record, { status: 'Complete', result: plain(outcome.result) })
}

/** A held job becomes one that runs, with another input if one is given. Any other job stays as it is. */
export function letGo(record: JobRecord, input?: unknown): JobRecord {
  if (!record.held) return record
  return released({ ...record, job: { ...record.job, ...(input !== undefined && { input: plain(input) }) } })
}

/** A held job can no longer be cancelled. Throws OperationAborted for a job that is not held, as after a cancel. */
export function sealed(record: JobRecord): JobRecord {
  if (record.held) return { ...record, committed: true }
  throw new S3Error('OperationAborted', { message: 'The job was cancelled before its content had arrived.' })
}

/** A job that waits for a retry becomes one that runs now. Any other job stays as it is. */
export function woken(record: JobRecord): JobRecord {
  return isPutOff(record) ? { ...record, notBefore: 0 } : record
}

export function isPutOff({ job, held, committed, putOff }: JobRecord): boolean {
  return job.status === 'Active' && !held && !committed && putOff !== undefined
}

function refused({ job }: JobRecord, why: string): S3Error {
  return new S3Error('InvalidRequest', { message: `The job ${why}.`, fields: { JobId: job.id, Status: job.status } })
}
