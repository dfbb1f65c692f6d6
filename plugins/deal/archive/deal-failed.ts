import { S3Error } from '../../../src/errors/s3-error.js'
import type { RunningJob } from '../../../src/jobs/job.js'
import type { ObjectDealInput } from '../jobs/inputs.js'
import type { DealParts } from '../parts.js'

/**
 * The deal that an object's class stands for was refused. An object that a lifecycle rule had moved is as any other again, so that another day's pass tries anew; one that
 * was stored in the class tells of it, for its job can be run again.
 */
export async function tellFailure(
  { host }: DealParts,
  { job, input, log }: RunningJob<ObjectDealInput>,
  error: unknown,
): Promise<void> {
  const { bucket, key, stamp, cause } = input
  if (!(error instanceof S3Error) || stamp === undefined || cause === 'call') return
  try {
    await host.own.store.annotate(bucket, key, stamp, (archive) => {
      if (archive?.jobId !== job.id) return archive
      const { storageClass, jobId, ...others } = archive
      if (cause === 'lifecycle') return others
      return { ...archive, facts: { ...archive.facts, 'deal-status': 'Failed' } }
    })
  } catch (err) {
    log.warn({ err, bucket, key }, 'an object does not tell that its deal failed')
  }
}
