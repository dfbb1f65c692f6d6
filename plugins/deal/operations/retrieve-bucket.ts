import { z } from 'zod'
import { S3Error } from '../../../src/errors/s3-error.js'
import { defineCall } from '../../../src/extension/define-call.js'
import { requireBucket } from '../../../src/operations/common/buckets.js'
import { RETRIEVE_BUCKET, type RetrieveBucketInput } from '../jobs/inputs.js'
import { retrieveBucketResult } from '../jobs/retrieve-bucket.js'
import { SOURCE } from '../request.js'
import { days, tier } from '../restore-terms.js'

const retrieveRequest = z.strictObject({
  Prefix: z.string().optional().describe('Only objects whose keys begin so.'),
  Days: days,
  Tier: tier,
})

export function retrieveBucket() {
  return defineCall({
    name: 'RetrieveBucket',
    source: SOURCE,
    summary: 'Brings back all objects of a bucket whose bytes are only in deals.',
    on: { method: 'POST', resource: 'bucket', subresource: 'x-deal-retrieve' },
    body: retrieveRequest,
    result: retrieveBucketResult,
    root: 'RetrieveResult',
    job: RETRIEVE_BUCKET,
    spends: false,
    async order({ request: { bucket }, body: { Prefix = '', Days = 0, Tier = 'Standard' } }, context) {
      context.requireWholeBucket(bucket, 'write')
      await requireBucket(context, bucket)
      if (Tier === 'Expedited')
        throw new S3Error('InvalidTier', { message: 'A whole bucket is retrieved with tier Standard or Bulk.' })
      const input: RetrieveBucketInput = { bucket, prefix: Prefix, days: Days, tier: Tier }
      return { resource: `/${bucket}`, input }
    },
  })
}
