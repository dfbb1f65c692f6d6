import { defineOperation } from '../../plugins/forms/operation.js'
import { noContent } from '../../response/reply.js'

export const deleteBucketLifecycle = defineOperation({
  name: 'DeleteBucketLifecycle',
  source: 'https://docs.aws.amazon.com/AmazonS3/latest/API/API_DeleteBucketLifecycle.html',
  access: 'owner',
  action: 's3:PutLifecycleConfiguration',
  on: { method: 'DELETE', resource: 'bucket', query: ['lifecycle'] },
  async run(request, context) {
    context.checks.requireWholeBucket(request.bucket, 'write')
    await context.settings.delete(request.bucket, 'lifecycle')
    return noContent()
  },
})
