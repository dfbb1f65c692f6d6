import { defineOperation } from '../../../plugins/forms/operation.js'
import { noContent } from '../../../response/reply.js'
import { replacePolicy } from '../../policy/bucket-policy.js'

export const deleteBucketPolicy = defineOperation({
  name: 'DeleteBucketPolicy',
  source: 'https://docs.aws.amazon.com/AmazonS3/latest/API/API_DeleteBucketPolicy.html',
  access: 'owner',
  action: 's3:DeleteBucketPolicy',
  on: { method: 'DELETE', resource: 'bucket', query: ['policy'] },
  async run(request, context) {
    context.checks.requireWholeBucket(request.bucket, 'read')
    context.checks.requireWholeBucket(request.bucket, 'write')
    await replacePolicy(context, request.bucket, undefined)
    return noContent()
  },
})
