import { defineOperation } from '../../registry/operation.js'
import { noContent } from '../../response/reply.js'
import { requireBucket } from '../common/buckets.js'

export const deleteBucketLifecycle = defineOperation({
  name: 'DeleteBucketLifecycle',
  source: 'https://docs.aws.amazon.com/AmazonS3/latest/API/API_DeleteBucketLifecycle.html',
  on: { method: 'DELETE', resource: 'bucket', query: ['lifecycle'] },
  async run(request, context) {
    context.requireWholeBucket(request.bucket, 'write')
    await requireBucket(context, request.bucket)
    await context.settings.delete(request.bucket, 'lifecycle')
    return noContent()
  },
})
