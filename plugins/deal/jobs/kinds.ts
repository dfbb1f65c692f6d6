import type { JobKind } from '../../../src/jobs/job.js'
import { failureOf } from '../archive/deal-failed.js'
import { decide, mustName } from '../archive/held-deal.js'
import type { DealParts } from '../parts.js'
import { BUCKET_DEAL, type BucketDealInput, OBJECT_DEAL, type ObjectDealInput } from './inputs.js'
import { makeDeal } from './make-deal.js'
import { reconcileDeal } from './reconcile-deal.js'
import type { DealResult } from './settle.js'
import { requireContent, requireObject } from './subject.js'

export function objectDeals(parts: DealParts): JobKind<ObjectDealInput, DealResult> {
  return {
    name: OBJECT_DEAL,
    async run(job) {
      try {
        return await makeDeal(parts, job, async () => {
          // Of what is only in a deal the server itself wants another one when that deal ends: its bytes can be had from nowhere else.
          const object = await requireObject(job.context, job.input, { mayBeCold: job.input.cause === 'lifecycle' })
          mustName(job, object)
          return object.stamp
        })
      } catch (error) {
        throw await failureOf(job, error, parts.host.now())
      }
    },
    reconcile: (job) => reconcileDeal(parts, parts.jobs, job),
    /** Held while the object is being stored, which then names its job. */
    held: (job) => decide(parts, job),
  }
}

export function bucketDeals(parts: DealParts): JobKind<BucketDealInput, DealResult> {
  return {
    name: BUCKET_DEAL,
    run: (job) => makeDeal(parts, job, () => requireContent(job.context, job.input.bucket).then(() => undefined)),
    reconcile: (job) => reconcileDeal(parts, parts.jobs, job),
  }
}
