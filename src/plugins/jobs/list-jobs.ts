import { S3Error } from '../../../common/errors/s3-error.js'
import type { Logger } from '../../../common/log.js'
import type { Session } from '../../api/identity.js'
import type { Job, JobFailure, JobQuery } from '../../api/jobs.js'
import type { IndexEntry, JobStore } from './job-store.js'
import { narrowed } from './narrow.js'
import { ended, hasEnded, type JobRecord, plain, released, renewed, withStatus } from './record.js'

/** Number of records that are read concurrently. */
const BATCH = 32

/** Lists jobs, newest first. Jobs that the index rules out are skipped without reading their records. */
export async function listJobs(
  store: JobStore,
  query: JobQuery,
  present: (record: JobRecord) => JobRecord,
): Promise<Job[]> {
  const found: Job[] = []
  const ids = wanted(store, query)
  while (found.length < query.limit) {
    const batch = take(ids, BATCH)
    if (batch.length === 0) break
    const records = await Promise.all(batch.map((id) => store.read(id)))
    for (const record of records) {
      if (!record) continue
      const { job } = present(record)
      if (query.status !== undefined && job.status !== query.status) continue
      if (query.matches?.(job) !== false) found.push(job)
    }
  }
  return found.slice(0, query.limit)
}

function* wanted({ index }: JobStore, query: JobQuery): Generator<string> {
  for (const [id, entry] of index.newestFirst(query.before)) if (mayBe(entry, query)) yield id
}

function mayBe({ kind, accessKeyId, end }: IndexEntry, query: JobQuery): boolean {
  if (query.accessKeyId !== undefined && query.accessKeyId !== accessKeyId) return false
  if (query.plugin !== undefined && !kind.startsWith(`${query.plugin}:`)) return false
  if (query.status === undefined) return true
  return hasEnded(query.status) ? end?.status === query.status : end === undefined
}

function take<T>(items: Generator<T>, count: number): T[] {
  const taken: T[] = []
  for (let next = items.next(); !next.done; next = items.next()) {
    taken.push(next.value)
    if (taken.length === count) break
  }
  return taken
}

/** Largest number of jobs on record: about 20 MB of memory. */
const MAX_JOBS = 100_000

/** Number of jobs that are removed at once to make room. */
const REMOVED_JOBS = 1000

/** Removes jobs that ended before `before`, ms since 1970, with their tokens. */
export async function sweepJobs(store: JobStore, before: number, stopping: AbortSignal, log: Logger): Promise<void> {
  let count = 0
  for (const [id, { end }] of store.index.oldestFirst()) {
    if (stopping.aborted) break
    if (end && end.at < before && (await store.remove(id, ({ job }) => hasEnded(job.status)))) count++
  }
  if (count > 0) log.info({ count }, 'removed expired jobs')
}

/**
 * When the number of jobs has reached its limit, removes the oldest that have ended and that no client can request
 * again by a token. Throws ServiceUnavailable if there are none.
 */
export async function makeRoom(store: JobStore, max = MAX_JOBS): Promise<void> {
  if (store.index.size < max) return
  const mayGo = ({ job }: JobRecord) => hasEnded(job.status) && job.token === undefined
  let left = REMOVED_JOBS
  for (const [id, { end }] of store.index.oldestFirst()) {
    if (end && (await store.remove(id, mayGo)) && --left === 0) return
  }
  if (store.index.size < max) return
  throw new S3Error('ServiceUnavailable', {
    message: `The server already keeps ${max} jobs. Try again when some of them have ended and expired.`,
  })
}

// What a job becomes by a request of a client. Each function throws InvalidRequest in a state that does not allow it.

/** @param running the job may be running, here or at another proxy, and has to be interrupted first */
export function cancelled(record: JobRecord, running: boolean): JobRecord {
  const { status } = record.job
  if (status === 'Cancelled' || status === 'Cancelling') return record
  if (hasEnded(status)) throw refused(record, `has ended: ${status}`)
  if (record.committed || status === 'Unknown') throw refused(record, 'has already sent something irrevocable')
  return running ? withStatus(record, 'Cancelling') : ended(record, { status: 'Cancelled' })
}

/** @param by see Jobs.retry */
export function retried(record: JobRecord, by?: Session): JobRecord {
  const { status, retries = 0, session } = record.job
  if (status === 'Failed' || status === 'Cancelled' || status === 'Unknown') {
    const limited = narrowed(session, by)
    return renewed({ ...record, job: { ...record.job, retries: retries + 1, ...(limited && { session: limited }) } })
  }
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
