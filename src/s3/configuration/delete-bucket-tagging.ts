import { defineOperation } from '../../plugins/forms/operation.js'
import { noContent } from '../../response/reply.js'

export const deleteBucketTagging = defineOperation({
  name: 'DeleteBucketTagging',
  source: 'https://docs.aws.amazon.com/AmazonS3/latest/API/API_DeleteBucketTagging.html',
  access: 'owner',
  action: 's3:PutBucketTagging',
  on: { method: 'DELETE', resource: 'bucket', query: ['tagging'] },
  async run(request, context) {
    context.checks.requireWholeBucket(request.bucket, 'write')
    await context.settings.delete(request.bucket, 'tagging')
    return noContent()
  },
})
