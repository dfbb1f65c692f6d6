import { S3Error } from '../../../src/errors/s3-error.js'
import type { RunningJob } from '../../../src/jobs/job.js'
import type { ObjectDealInput } from '../jobs/inputs.js'
import { isPassing, type Patience, patiently } from '../jobs/patience.js'

const WEEK_MS = 7 * 86_400_000
/** Of deals that nobody would ask for again. */
const PATIENCE: Patience = { firstMs: 5000, longestMs: 15 * 60_000, altogetherMs: WEEK_MS }
/** As long as the object cannot be told either. */
const UNTOLD: Patience = { ...PATIENCE, altogetherMs: 2 * WEEK_MS }

/**
 * What the job of an object's deal is to end its run with that was thrown `error`. Whoever calls for a deal is told that the gateway cannot be reached; a deal that a storage
 * class or the server itself wants is tried again, and what refuses it for good is told by the object.
 * @param now ms since 1970
 */
export async function failureOf(job: RunningJob<ObjectDealInput>, error: unknown, now: number): Promise<unknown> {
  if (job.input.cause === 'call' || !job.owned()) return error
  const thrown = patiently(job, error, now, PATIENCE)
  // When the server stops, the job goes on after the restart.
  if (!(thrown instanceof S3Error) || (job.signal.aborted && isPassing(thrown))) return thrown
  try {
    await tellFailure(job)
    return thrown
  } catch (err) {
    const later = patiently(job, err, now, UNTOLD)
    if (later !== err) return later
    const { bucket, key } = job.input
    job.log.warn({ err, bucket, key }, 'an object does not tell that its deal failed')
    return thrown
  }
}

/**
 * The deal that an object's class stands for was refused. An object that a lifecycle rule had moved is as any other again, so that another day's pass tries anew; one that
 * was stored in the class tells of it, for its job can be run again.
 */
async function tellFailure({ job, input, context: { store } }: RunningJob<ObjectDealInput>): Promise<void> {
  const { bucket, key, cause } = input
  const object = await store.findToWrite(bucket, key)
  if (object?.archive?.jobId !== job.id) return
  await store.annotate(bucket, key, object.stamp, (archive) => {
    const { storageClass, jobId, ...others } = archive ?? {}
    if (jobId !== job.id) return archive
    return cause === 'lifecycle' ? others : { ...archive, facts: { ...archive?.facts, 'deal-status': 'Failed' } }
  })
}
