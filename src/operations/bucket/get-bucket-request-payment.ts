import { defineOperation } from '../../registry/operation.js'
import { xml } from '../../response/reply.js'
import { document } from '../../xml.js'
import { requireBucket } from '../common/buckets.js'

/** Nobody else can be made to pay. */
export const getBucketRequestPayment = defineOperation({
  name: 'GetBucketRequestPayment',
  source: 'https://docs.aws.amazon.com/AmazonS3/latest/API/API_GetBucketRequestPayment.html',
  partly: 'Always BucketOwner.',
  on: { method: 'GET', resource: 'bucket', query: ['requestPayment'] },
  async run(request, context) {
    context.requireWholeBucket(request.bucket, 'read')
    await requireBucket(context, request.bucket)
    return xml(document('RequestPaymentConfiguration', '<Payer>BucketOwner</Payer>'))
  },
})
