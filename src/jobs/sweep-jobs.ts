import { S3Error } from '../errors/s3-error.js'
import type { Logger } from '../log.js'
import type { JobStore } from './job-store.js'
import { hasEnded, type JobRecord } from './record.js'

/** Jobs that are remembered at most: some 20 MB of memory. */
const MAX_JOBS = 100_000
/** Made room for at once. */
const ROOM = 1000

/** Forgets jobs that ended before `before`, ms since 1970, with their tokens. */
export async function sweepJobs(store: JobStore, before: number, stopping: AbortSignal, log: Logger): Promise<void> {
  let count = 0
  for (const [id, { end }] of store.index.oldestFirst()) {
    if (stopping.aborted) break
    if (end && end.at < before && (await store.remove(id, ({ job }) => hasEnded(job.status)))) count++
  }
  if (count > 0) log.info({ count }, 'removed jobs that ended long ago')
}

/**
 * Where there are as many jobs as can be remembered, forgets the oldest of those that have ended and that nobody can ask for again by a token. Throws ServiceUnavailable
 * when there are none.
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
    message: `The server remembers ${max} jobs already. Try again when some of them have ended and been forgotten.`,
  })
}
