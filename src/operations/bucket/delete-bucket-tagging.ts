import { defineOperation } from '../../registry/operation.js'
import { noContent } from '../../response/reply.js'
import { requireBucket } from '../common/buckets.js'

export const deleteBucketTagging = defineOperation({
  name: 'DeleteBucketTagging',
  source: 'https://docs.aws.amazon.com/AmazonS3/latest/API/API_DeleteBucketTagging.html',
  on: { method: 'DELETE', resource: 'bucket', query: ['tagging'] },
  async run(request, context) {
    context.requireWholeBucket(request.bucket, 'write')
    await requireBucket(context, request.bucket)
    await context.settings.delete(request.bucket, 'tagging')
    return noContent()
  },
})
