import type { JobKind } from 'dealgate'
import { decide, mustName } from '../archive/held-deal.js'
import type { DealParts } from '../parts.js'
import { measure } from '../quote/measure.js'
import { refuseDearPrice } from '../quote/price-limit.js'
import { BUCKET_DEAL, type BucketDealInput, OBJECT_DEAL, type ObjectDealInput } from '../records/inputs.js'
import { patiently, waitingLong } from '../records/patience.js'
import { requireContent, requireObject } from '../subject.js'
import { failureOf } from './deal-failed.js'
import { makeDeal } from './make-deal.js'
import { reconcileDeal } from './reconcile-deal.js'
import type { DealResult } from './record-deal.js'

export function objectDeals(parts: DealParts): JobKind<ObjectDealInput, DealResult> {
  return {
    name: OBJECT_DEAL,
    async run(job) {
      try {
        return await makeDeal(parts, job, async () => {
          const object = await requireObject(job.context, job.input)
          mustName(job, object)
          await refuseDearPrice(parts, job.context, job.input, () => ({ bytes: object.size, objects: 1 }))
          return object.stamp
        })
      } catch (error) {
        throw await failureOf(parts, job, error)
      }
    },
    reconcile: (job) => reconcileDeal(parts, parts.jobs, job),
    /** The job is held while the object is being stored, which then names its job. */
    held: (job) => decide(parts, job),
  }
}

export function bucketDeals(parts: DealParts): JobKind<BucketDealInput, DealResult> {
  return {
    name: BUCKET_DEAL,
    async run(job) {
      const { context, input, signal } = job
      try {
        return await makeDeal(parts, job, async () => {
          await requireContent(context, input.bucket)
          await refuseDearPrice(parts, context, input, () => measure(context, { bucket: input.bucket }, signal))
          return undefined
        })
      } catch (error) {
        throw input.cause === 'call' ? error : patiently(job, error, parts.host.now(), waitingLong)
      }
    },
    reconcile: (job) => reconcileDeal(parts, parts.jobs, job),
  }
}
