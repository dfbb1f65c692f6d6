import { defineOperation } from '../../registry/operation.js'
import { xml } from '../../response/reply.js'
import { document } from '../../xml.js'
import { requireBucket } from '../common/buckets.js'

/** An empty status says: off. */
export const getBucketLogging = defineOperation({
  name: 'GetBucketLogging',
  source: 'https://docs.aws.amazon.com/AmazonS3/latest/API/API_GetBucketLogging.html',
  partly: 'Always the empty status: nothing is logged into a bucket.',
  on: { method: 'GET', resource: 'bucket', query: ['logging'] },
  async run(request, context) {
    context.requireWholeBucket(request.bucket, 'read')
    await requireBucket(context, request.bucket)
    return xml(document('BucketLoggingStatus', ''))
  },
})
