import type { Context } from '../../../src/context.js'
import { S3Error } from '../../../src/errors/s3-error.js'
import type { Job, RunningJob } from '../../../src/jobs/job.js'
import type { StoredObject } from '../../../src/store/store.js'
import type { ObjectDealInput } from '../jobs/inputs.js'
import type { DealParts } from '../parts.js'

type HeldJob = Pick<Job<ObjectDealInput>, 'id' | 'input'>

/**
 * Lets the job begin if the object names it, which is so once the object is stored, and forgets it otherwise: also where the object was replaced at once, or where nobody
 * can say whether it was stored. Resolves true when it begins. What keeps it from that for now is thrown; it is then done later.
 */
export async function settle(parts: DealParts, context: Context, job: HeldJob): Promise<boolean> {
  try {
    const object = await mayBegin(parts, context, job)
    if (object) await parts.jobs.release<ObjectDealInput>(job.id, { ...job.input, ...object })
    else await parts.jobs.drop(job.id)
    return object !== undefined
  } catch (error) {
    await parts.jobs.leave(job.id)
    throw error
  }
}

/** See JobKind.held. */
export async function decide(
  parts: DealParts,
  { job, context }: RunningJob<ObjectDealInput>,
): Promise<'release' | 'drop'> {
  return (await mayBegin(parts, context, job)) ? 'release' : 'drop'
}

/** The object that the job is about, ready for it to begin; undefined where it is to be forgotten, with what it was to cost. */
async function mayBegin(
  parts: DealParts,
  context: Context,
  job: HeldJob,
): Promise<Pick<StoredObject, 'stamp' | 'etag'> | undefined> {
  const object = await named(context, job)
  if (object) await remember(parts, context, object)
  else await parts.spending.release(job.id)
  return object && { stamp: object.stamp, etag: object.etag }
}

/** Throws PreconditionFailed for another object than the one that the job was put on record for. */
export function mustName({ job, input }: RunningJob<ObjectDealInput>, { archive }: StoredObject): void {
  if (input.cause !== 'class' || archive?.jobId === job.id) return
  throw new S3Error('PreconditionFailed', {
    message: 'The object was replaced before its deal was made. The new one has a deal of its own, or none.',
  })
}

async function named(context: Context, { id, input }: HeldJob): Promise<StoredObject | undefined> {
  const object = await context.store.findToWrite(input.bucket, input.key)
  return object?.archive?.jobId === id ? object : undefined
}

/** Its copy may go once a deal holds it; the server gives up copies in its own account only. */
export async function remember(
  { host, copies }: DealParts,
  context: Pick<Context, 'caller'>,
  { bucket, key, stamp, archive }: Pick<StoredObject, 'bucket' | 'key' | 'stamp' | 'archive'>,
): Promise<void> {
  if (archive?.storageClass !== 'GLACIER' || context.caller?.identity.account) return
  await copies.set({ bucket, key, stamp, due: host.now() })
}
