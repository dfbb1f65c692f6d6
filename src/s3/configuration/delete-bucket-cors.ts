import { defineOperation } from '../../plugins/forms/operation.js'
import { noContent } from '../../response/reply.js'

export const deleteBucketCors = defineOperation({
  name: 'DeleteBucketCors',
  source: 'https://docs.aws.amazon.com/AmazonS3/latest/API/API_DeleteBucketCors.html',
  access: 'owner',
  action: 's3:PutBucketCORS',
  on: { method: 'DELETE', resource: 'bucket', query: ['cors'] },
  async run(request, context) {
    context.checks.requireWholeBucket(request.bucket, 'write')
    await context.settings.delete(request.bucket, 'cors')
    return noContent()
  },
})
