import { type Context, type Job, type RunningJob, S3Error, type StoredObject } from 'dealgate'
import { isEvicted } from '../configuration.js'
import type { DealParts } from '../parts.js'
import type { ObjectDealInput } from '../records/inputs.js'

type HeldJob = Pick<Job<ObjectDealInput>, 'id' | 'input'>

/**
 * Starts the held job if the object names it, which is so once the object is stored, and drops it otherwise, also when
 * the object was replaced at once. Resolves true when the job starts. If that cannot be decided now, it throws, and the
 * job's kind decides later.
 */
export async function releaseOrDrop(parts: DealParts, context: Context, job: HeldJob): Promise<boolean> {
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

/** Implements JobKind.held. */
export async function decide(
  parts: DealParts,
  { job, context }: RunningJob<ObjectDealInput>,
): Promise<'release' | 'drop'> {
  return (await mayBegin(parts, context, job)) ? 'release' : 'drop'
}

/**
 * The object that the job concerns, once the job may start; undefined when the job is to be dropped, with its reserved
 * cost.
 */
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

/** Throws PreconditionFailed unless the object names this job. */
export function mustName({ job, input }: RunningJob<ObjectDealInput>, { archive }: StoredObject): void {
  if (input.cause !== 'class' || archive?.jobId === job.id) return
  throw new S3Error('PreconditionFailed', {
    message: 'The object was replaced before its deal was made. The new object has a deal of its own, or none.',
  })
}

async function named(context: Context, { id, input }: HeldJob): Promise<StoredObject | undefined> {
  const object = await context.store.findToWrite(input.bucket, input.key)
  return object?.archive?.jobId === id ? object : undefined
}

/** Schedules the copy of an object in GLACIER for eviction. The server evicts copies in its own account only. */
export async function remember(
  { host, copies }: DealParts,
  context: Pick<Context, 'caller'>,
  { bucket, key, stamp, archive }: Pick<StoredObject, 'bucket' | 'key' | 'stamp' | 'archive'>,
): Promise<void> {
  if (!isEvicted(archive?.storageClass) || context.caller?.identity.account) return
  await copies.set({ bucket, key, stamp, due: host.now() })
}
