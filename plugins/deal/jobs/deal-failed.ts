import { type Context, type RunningJob, S3Error } from 'dealgate'
import type { DealParts } from '../parts.js'
import type { ObjectDealInput } from '../records/inputs.js'
import { isPassing, type Patience, patiently, waitingLong } from '../records/patience.js'

/** While the failure cannot be written to the object either. */
const UNTOLD: Patience = { ...waitingLong, altogetherMs: 2 * waitingLong.altogetherMs }

/**
 * What the job of an object's deal throws in place of `error`. The caller of a deal operation learns that the gateway
 * cannot be reached. A deal for a storage class or a lifecycle rule is retried, and a permanent refusal is recorded
 * with the object.
 */
export async function failureOf(
  { host }: DealParts,
  job: RunningJob<ObjectDealInput>,
  error: unknown,
): Promise<unknown> {
  if (job.input.cause === 'call' || !job.owned()) return error
  const now = host.now()
  const thrown = patiently(job, error, now, waitingLong)
  // When the server stops, the job continues after the restart.
  if (!(thrown instanceof S3Error) || (job.signal.aborted && isPassing(thrown))) return thrown
  try {
    await tellFailure(host.own, job)
    return thrown
  } catch (err) {
    const later = patiently(job, err, now, UNTOLD)
    if (later !== err) return later
    const { bucket, key } = job.input
    job.log.warn({ err, bucket, key }, 'deal failed; object metadata not updated')
    return thrown
  }
}

/**
 * Records with the object that the deal of its class was refused. An object that a lifecycle rule moved leaves the
 * class, so that the rule tries again on another day. An object that was stored in the class keeps it with the reason,
 * and is reported as if it had no class until its job is retried and makes the deal. The server
 * writes the record, because the writer of the object need not own the bucket.
 */
async function tellFailure({ store }: Context, { job, input }: RunningJob<ObjectDealInput>): Promise<void> {
  const { bucket, key, cause } = input
  const object = await store.findToWrite(bucket, key)
  if (object?.archive?.jobId !== job.id) return
  await store.annotate(bucket, key, object.stamp, (archive) => {
    const { storageClass, jobId, ...others } = archive ?? {}
    if (jobId !== job.id) return archive
    return cause === 'lifecycle'
      ? others
      : { ...archive, failed: true, facts: { ...archive?.facts, 'deal-status': 'Failed' } }
  })
}
