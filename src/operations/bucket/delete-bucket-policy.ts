import { replacePolicy } from '../../policy/bucket-policy.js'
import { defineOperation } from '../../registry/operation.js'
import { noContent } from '../../response/reply.js'
import { requireBucket } from '../common/buckets.js'

export const deleteBucketPolicy = defineOperation({
  name: 'DeleteBucketPolicy',
  source: 'https://docs.aws.amazon.com/AmazonS3/latest/API/API_DeleteBucketPolicy.html',
  on: { method: 'DELETE', resource: 'bucket', query: ['policy'] },
  async run(request, context) {
    context.requireWholeBucket(request.bucket, 'read')
    context.requireWholeBucket(request.bucket, 'write')
    await requireBucket(context, request.bucket)
    await replacePolicy(context, request.bucket, [], undefined)
    return noContent()
  },
})
