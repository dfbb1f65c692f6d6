import { isCode } from '../errors/codes.js'
import { S3Error } from '../errors/s3-error.js'
import { toS3Error } from '../response/error-reply.js'
import type { Job, JobFailure, JobProgress, JobStatus, NewJob, PutOff } from './job.js'

/** A job as it is kept, with what only this server needs to know of it. */
export interface JobRecord {
  readonly job: Job
  /** Not to be begun before it is released. */
  readonly held: boolean
  /** Something that cannot be taken back was about to be sent, and how that ended is not on record. */
  readonly committed: boolean
  /** It is left alone until then, ms since 1970. */
  readonly notBefore: number
  /** How often it was asked in vain what became of it. */
  readonly asked: number
  readonly putOff?: PutOff
}

const NO_PROGRESS: JobProgress = Object.freeze({
  phase: '',
  tasks: Object.freeze({ total: 0, succeeded: 0, failed: 0 }),
  bytes: Object.freeze({ done: 0, total: 0 }),
})

/** @param now ms since 1970 */
export function newRecord(id: string, asked: NewJob<unknown>, now: number): JobRecord {
  const { kind, resource, input, accessKeyId, token, requestHash, held = false } = asked
  const job: Job = {
    id,
    operation: kind,
    status: 'New',
    resource,
    input: plain(input),
    accessKeyId,
    ...(token !== undefined && { token }),
    ...(requestHash !== undefined && { requestHash }),
    progress: NO_PROGRESS,
    created: now,
    updated: now,
  }
  return { job, held, committed: false, notBefore: 0, asked: 0 }
}

/** As it comes back from the records; throws TypeError for what cannot be kept. */
export function plain(value: unknown): unknown {
  return value === undefined ? null : JSON.parse(JSON.stringify(value))
}

export type EndStatus = Extract<JobStatus, 'Complete' | 'Failed' | 'Cancelled'>

export function hasEnded(status: JobStatus): status is EndStatus {
  return status === 'Complete' || status === 'Failed' || status === 'Cancelled'
}

type Outcome =
  | { readonly status: 'Complete'; readonly result: unknown }
  | { readonly status: 'Failed'; readonly failure: JobFailure }
  | { readonly status: 'Cancelled' }

/** The end of a job, however it came. */
export function ended(record: JobRecord, outcome: Outcome): JobRecord {
  const { result: _, failure: __, ...job } = record.job
  return { ...record, job: { ...job, ...outcome }, held: false, committed: false, notBefore: 0 }
}

/** No longer held. */
export function released(record: JobRecord): JobRecord {
  return { ...record, held: false, notBefore: 0, asked: 0 }
}

/** As if it had just been asked for. */
export function renewed(record: JobRecord): JobRecord {
  const { result: _, failure: __, ...job } = record.job
  return { job: { ...job, status: 'New' }, held: false, committed: false, notBefore: 0, asked: 0 }
}

export function withStatus(record: JobRecord, status: JobStatus): JobRecord {
  return { ...record, job: { ...record.job, status } }
}

/** What can be kept and told of whatever a job failed with: what is no S3Error stays in the log. */
export function failureOf(thrown: unknown): JobFailure {
  const { code, message, status, fields } = toS3Error(thrown)
  return {
    code,
    message,
    ...(!isCode(code) && { status }),
    ...(Object.keys(fields).length > 0 && { fields }),
  }
}

export function noSuchJob(id: string): S3Error {
  return new S3Error('NoSuchJob', { fields: { JobId: id } })
}
