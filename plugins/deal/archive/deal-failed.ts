import { S3Error } from '../../../src/errors/s3-error.js'
import type { RunningJob } from '../../../src/jobs/job.js'
import type { ObjectDealInput } from '../jobs/inputs.js'

/**
 * The deal that an object's class stands for was refused. An object that a lifecycle rule had moved is as any other again, so that another day's pass tries anew; one that
 * was stored in the class tells of it, for its job can be run again.
 */
export async function tellFailure(
  { job, input, context, log }: RunningJob<ObjectDealInput>,
  error: unknown,
): Promise<void> {
  const { bucket, key, cause } = input
  if (!(error instanceof S3Error) || cause === 'call') return
  try {
    const object = await context.store.findToWrite(bucket, key)
    if (object?.archive?.jobId !== job.id) return
    await context.store.annotate(bucket, key, object.stamp, (archive) => {
      const { storageClass, jobId, ...others } = archive ?? {}
      if (jobId !== job.id) return archive
      return cause === 'lifecycle' ? others : { ...archive, facts: { ...archive?.facts, 'deal-status': 'Failed' } }
    })
  } catch (err) {
    log.warn({ err, bucket, key }, 'an object does not tell that its deal failed')
  }
}
