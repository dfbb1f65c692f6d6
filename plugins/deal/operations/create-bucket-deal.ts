import { defineCall } from 'dealgate'
import { dealResult } from '../jobs/record-deal.js'
import type { DealParts } from '../parts.js'
import { BUCKET_DEAL, type BucketDealInput } from '../records/inputs.js'
import { dealRequest, SOURCE } from '../request.js'
import { requireContent } from '../subject.js'
import { termAliases } from '../terms/terms.js'

/** Backs up a whole bucket by one online deal. */
export function createBucketDeal(parts: DealParts) {
  return defineCall({
    name: 'CreateBucketDeal',
    source: SOURCE,
    summary: 'Makes one deal for all objects of a bucket as they are now.',
    access: 'owner',
    on: { method: 'POST', resource: 'bucket', subresource: 'x-deal' },
    body: dealRequest,
    aliases: termAliases,
    result: dealResult,
    root: 'DealResult',
    job: BUCKET_DEAL,
    spends: true,
    async order({ request: { bucket }, body }, context) {
      await requireContent(context, bucket)
      const agreed = await parts.termsFor(context, bucket, { request: body })
      const input: BucketDealInput = { bucket, ...agreed, cause: 'call', ...(body.Force && { force: true }) }
      return { resource: `/${bucket}`, input }
    },
  })
}
