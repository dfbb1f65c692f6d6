import { defineCall } from '../../../src/extension/define-call.js'
import { BUCKET_DEAL, type BucketDealInput } from '../jobs/inputs.js'
import { dealResult } from '../jobs/settle.js'
import { requireContent } from '../jobs/subject.js'
import type { DealParts } from '../parts.js'
import { dealRequest, SOURCE } from '../request.js'
import { termAliases } from '../terms.js'

/** Backs a whole bucket up by one online deal. */
export function createBucketDeal(parts: DealParts) {
  return defineCall({
    name: 'CreateBucketDeal',
    source: SOURCE,
    summary: 'Makes one deal about all objects of a bucket as they are now.',
    on: { method: 'POST', resource: 'bucket', subresource: 'x-deal' },
    body: dealRequest,
    aliases: termAliases,
    result: dealResult,
    root: 'DealResult',
    job: BUCKET_DEAL,
    spends: true,
    async order({ request: { bucket }, body }, context) {
      await requireContent(context, bucket)
      const terms = await parts.termsFor(context, bucket, { request: body })
      const input: BucketDealInput = { bucket, terms, cause: 'call' }
      return { resource: `/${bucket}`, input }
    },
  })
}
