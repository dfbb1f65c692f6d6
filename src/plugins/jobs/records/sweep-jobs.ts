import { S3Error } from '../../../common/errors/s3-error.js'
import type { Logger } from '../../../common/log.js'
import type { JobStore } from './job-store.js'
import { hasEnded, type JobRecord } from './record.js'

/** Largest number of jobs on record: about 20 MB of memory. */
const MAX_JOBS = 100_000
/** Number of jobs that are removed at once to make room. */
const ROOM = 1000

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
  let left = ROOM
  for (const [id, { end }] of store.index.oldestFirst()) {
    if (end && (await store.remove(id, mayGo)) && --left === 0) return
  }
  if (store.index.size < max) return
  throw new S3Error('ServiceUnavailable', {
    message: `The server already keeps ${max} jobs. Try again when some of them have ended and expired.`,
  })
}
