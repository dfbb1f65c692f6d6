import { defineOperation } from '../../registry/operation.js'
import { noContent } from '../../response/reply.js'
import { requireBucket } from '../common/buckets.js'

/** As S3 answers where there was none. */
export const deleteBucketWebsite = defineOperation({
  name: 'DeleteBucketWebsite',
  source: 'https://docs.aws.amazon.com/AmazonS3/latest/API/API_DeleteBucketWebsite.html',
  partly: 'There is never a configuration to delete.',
  on: { method: 'DELETE', resource: 'bucket', query: ['website'] },
  async run(request, context) {
    context.requireWholeBucket(request.bucket, 'write')
    await requireBucket(context, request.bucket)
    return noContent()
  },
})
