import { defineOperation } from '../../registry/operation.js'
import { xml } from '../../response/reply.js'
import { document } from '../../xml.js'
import { requireBucket } from '../common/buckets.js'

/** An empty configuration says: never switched on. */
export const getBucketAccelerateConfiguration = defineOperation({
  name: 'GetBucketAccelerateConfiguration',
  source: 'https://docs.aws.amazon.com/AmazonS3/latest/API/API_GetBucketAccelerateConfiguration.html',
  partly: 'Always the empty configuration: never accelerated.',
  on: { method: 'GET', resource: 'bucket', query: ['accelerate'] },
  async run(request, context) {
    context.requireWholeBucket(request.bucket, 'read')
    await requireBucket(context, request.bucket)
    return xml(document('AccelerateConfiguration', ''))
  },
})
