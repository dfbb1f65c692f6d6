import { defineCall, S3Error } from 'dealgate'
import { z } from 'zod'
import { retrieveBucketResult } from '../jobs/retrieve-bucket.js'
import { RETRIEVE_BUCKET, type RetrieveBucketInput } from '../records/inputs.js'
import { SOURCE } from '../request.js'
import { requireBucket } from '../subject.js'
import { days, tier } from '../terms/restore-terms.js'

const retrieveRequest = z.strictObject({
  Prefix: z.string().optional().describe('Only objects whose keys begin with this text.'),
  Days: days,
  Tier: tier,
})

export function retrieveBucket() {
  return defineCall({
    name: 'RetrieveBucket',
    source: SOURCE,
    summary: 'Restores all objects of a bucket whose bytes are only in deals.',
    access: 'owner',
    on: { method: 'POST', resource: 'bucket', subresource: 'x-deal-retrieve' },
    body: retrieveRequest,
    result: retrieveBucketResult,
    root: 'RetrieveResult',
    job: RETRIEVE_BUCKET,
    spends: false,
    async order({ request: { bucket }, body: { Prefix = '', Days = 0, Tier = 'Standard' } }, context) {
      context.checks.requireWholeBucket(bucket, 'write')
      await requireBucket(context, bucket)
      if (Tier === 'Expedited')
        throw new S3Error('InvalidTier', { message: 'To retrieve a whole bucket, use the tier Standard or Bulk.' })
      const input: RetrieveBucketInput = { bucket, prefix: Prefix, days: Days, tier: Tier }
      return { resource: `/${bucket}`, input }
    },
  })
}
