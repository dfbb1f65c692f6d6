import { type JobKind, type RunningJob, S3Error, type StoredObject } from 'dealgate/plugin'
import { decide, mustName, named } from '../archive/restore.js'
import type { DealDeps } from '../deps.js'
import { isPassing, patiently, type RetryTimes, waitingLong } from '../records/sequence.js'
import { requireContent, requireObject } from '../subject.js'
import { measure } from '../terms/quote.js'
import { publicWarningOf, refuseDearPrice } from '../terms/warnings.js'
import { BUCKET_DEAL, type BucketDealInput, OBJECT_DEAL, type ObjectDealInput } from './inputs.js'
import { makeDeal } from './make-deal.js'
import { reconcileDeal } from './reconcile-deal.js'
import type { DealResult } from './record-deal.js'

export function objectDeals(deps: DealDeps): JobKind<ObjectDealInput, DealResult> {
  return {
    name: OBJECT_DEAL,
    run: (job) =>
      deps.events.ofJob(job, ['DealRequested', 'DealFailed'], async () => {
        try {
          return await makeDeal(deps, job, async () => {
            const { bucket, key } = job.input
            const object = await objectOf(deps, job)
            const { revision } = object
            mustName(job, object)
            await refuseDearPrice(deps, job.context, job.input, () => ({
              bytes: object.storedSize ?? object.size,
              objects: 1,
            }))
            await publicWarningOf(deps, job.context, { bucket, key, revision }, job)
            return revision
          })
        } catch (error) {
          throw await failureOf(deps, job, error)
        }
      }),
    reconcile: (job) => reconcileDeal(deps, deps.jobs, job),
    /** The job is held while the object is being stored, which then names its job. */
    held: (job) => decide(deps, job),
  }
}

/** The job of a write that was released after a crash does not know its object, which names it. */
async function objectOf(deps: DealDeps, { job, context, input }: RunningJob<ObjectDealInput>): Promise<StoredObject> {
  const found = input.cause === 'class' && input.stamp === undefined ? await named(deps, context, job) : undefined
  return requireObject(context, found ?? { ...input, revision: input.stamp })
}

export function bucketDeals(deps: DealDeps): JobKind<BucketDealInput, DealResult> {
  return {
    name: BUCKET_DEAL,
    async run(job) {
      const { context, input, signal } = job
      try {
        return await makeDeal(deps, job, async () => {
          await requireContent(context, input.bucket)
          await refuseDearPrice(deps, context, input, () => measure(context, { bucket: input.bucket }, signal))
          await publicWarningOf(deps, context, { bucket: input.bucket, signal }, job)
          return undefined
        })
      } catch (error) {
        throw input.cause === 'call' ? error : patiently(job, error, deps.host.now(), waitingLong)
      }
    },
    reconcile: (job) => reconcileDeal(deps, deps.jobs, job),
  }
}

/** While the failure cannot be written to the object either. */
const UNREPORTED: RetryTimes = { ...waitingLong, altogetherMs: 2 * waitingLong.altogetherMs }

/**
 * What the job of an object's deal throws in place of `error`. The caller of a deal operation learns that the gateway
 * cannot be reached. A deal for a storage class or a lifecycle rule is retried, and a permanent refusal is recorded
 * with the object.
 */
async function failureOf(deps: DealDeps, job: RunningJob<ObjectDealInput>, error: unknown): Promise<unknown> {
  if (job.input.cause === 'call' || !job.owned()) return error
  const { host } = deps
  const now = host.now()
  const thrown = patiently(job, error, now, waitingLong)
  // When the server stops, the job continues after the restart.
  if (!(thrown instanceof S3Error) || (job.signal.aborted && isPassing(thrown))) return thrown
  try {
    await annotateFailure(deps, job)
    return thrown
  } catch (err) {
    const later = patiently(job, err, now, UNREPORTED)
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
async function annotateFailure(deps: DealDeps, { job, input }: RunningJob<ObjectDealInput>): Promise<void> {
  const { bucket, key, cause } = input
  const { own } = deps.host
  const object = await named(deps, own, job)
  if (!object) return
  await own.store.annotate(bucket, key, object.revision, (archive) => {
    const { storageClass, jobId, ...others } = archive ?? {}
    if (jobId !== job.id) return archive
    return cause === 'lifecycle'
      ? others
      : { ...archive, failed: true, facts: { ...archive?.facts, 'deal-status': 'Failed' } }
  })
}
