import { decodeTime, isValid, monotonicFactory } from 'ulid'
import { isCode } from '../../../common/errors/codes.js'
import { S3Error, slowDown } from '../../../common/errors/s3-error.js'
import type { Job, JobFailure, JobProgress, JobStatus, NewJob, PutOff } from '../../api/jobs.js'
import { toS3Error } from '../../http/error-reply.js'

/** A job as it is stored, with the members that only the server needs. */
export interface JobRecord {
  readonly job: Job
  /** The job must not start before it is released. */
  readonly held: boolean
  /** Something irrevocable was about to be sent, and its outcome is not on record. */
  readonly committed: boolean
  /** The job does not run before this time, ms since 1970. */
  readonly notBefore: number
  /** Number of unsuccessful attempts to find out the outcome. */
  readonly asked: number
  readonly putOff?: PutOff
  /** Requests that have changed the job, as far as they could be sent again. */
  readonly orders?: readonly Order[]
}

/** A signed request to change a job, by the hash of its signature. */
interface Order {
  readonly signature: string
  /** ms since 1970 */
  readonly at: number
}

/** A signature in the headers is good for half an hour at most; ms. */
const REMEMBER_ORDERS_MS = 60 * 60_000

/** Most signatures that are remembered for one job: its record is read and written as a whole. */
const MAX_ORDERS = 100

/**
 * Changes a record once per signature: a captured request that is sent again changes nothing, whatever state the job
 * is in. A new request of the client has another signature, because its date differs.
 * Throws SlowDown after 100 of them in an hour.
 * @param signature hash of the signature
 * @param now ms since 1970
 */
export function oncePerSignature(
  record: JobRecord,
  signature: string,
  now: number,
  to: (record: JobRecord) => JobRecord,
): JobRecord {
  const { orders = [] } = record
  if (orders.some((order) => order.signature === signature)) return record
  const known = orders.filter(({ at }) => at > now - REMEMBER_ORDERS_MS)
  if (known.length >= MAX_ORDERS) throw slowDown('The job was changed too often within an hour: try again later.')
  return { ...to(record), orders: [...known, { signature, at: now }] }
}

const NO_PROGRESS: JobProgress = Object.freeze({
  phase: '',
  tasks: Object.freeze({ total: 0, succeeded: 0, failed: 0 }),
  bytes: Object.freeze({ done: 0, total: 0 }),
})

export function newRecord(id: string, asked: NewJob<unknown>, now: number): JobRecord {
  const { kind, resource, input, accessKeyId, session, token, requestHash, signature, held = false } = asked
  const job: Job = {
    id,
    operation: kind,
    status: 'New',
    resource,
    input: plain(input),
    accessKeyId,
    ...(session && { session }),
    ...(token !== undefined && { token }),
    ...(requestHash !== undefined && { requestHash }),
    ...(token === undefined && signature !== undefined && { signature }),
    progress: NO_PROGRESS,
    created: now,
    updated: now,
  }
  return { job, held, committed: false, notBefore: 0, asked: 0 }
}

/** Returns a value as the records return it. Throws TypeError for a value that JSON cannot represent. */
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

export function ended(record: JobRecord, outcome: Outcome): JobRecord {
  const { result: _, failure: __, ...job } = record.job
  return { ...record, job: { ...job, ...outcome }, held: false, committed: false, notBefore: 0 }
}

/** Returns the record no longer held. Its run or the kind finds out what a content has done that was sent. */
export function released(record: JobRecord): JobRecord {
  return { ...record, held: false, committed: false, notBefore: 0, asked: 0 }
}

/** Returns the record as that of a new job. */
export function renewed(record: JobRecord): JobRecord {
  const { result: _, failure: __, ...job } = record.job
  const { orders } = record
  return {
    job: { ...job, status: 'New' },
    held: false,
    committed: false,
    notBefore: 0,
    asked: 0,
    ...(orders && { orders }),
  }
}

export function withStatus(record: JobRecord, status: JobStatus): JobRecord {
  return { ...record, job: { ...record.job, status } }
}

/**
 * Converts an error to the failure that is stored and shown. The details of an error other than an S3Error stay in the
 * log.
 */
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

/**
 * Generates ids that sort as text in the order of their creation: 48 bits of time, 80 random bits. Within one
 * millisecond, and while the clock goes backwards, the random part counts up. https://github.com/ulid/spec
 * @param now ms since 1970
 */
export function ulids(now: () => number): () => string {
  const next = monotonicFactory()
  return () => next(now())
}

/** The time in an id, ms since 1970; NaN for an invalid id. */
export function timeOfUlid(id: string): number {
  if (!isValid(id)) return Number.NaN
  try {
    return decodeTime(id)
  } catch {
    // `isValid` accepts times of more than 48 bits.
    return Number.NaN
  }
}
