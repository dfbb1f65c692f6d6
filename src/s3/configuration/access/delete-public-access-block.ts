import { defineOperation } from '../../../plugins/forms/operation.js'
import { noContent } from '../../../response/reply.js'

export const deletePublicAccessBlock = defineOperation({
  name: 'DeletePublicAccessBlock',
  source: 'https://docs.aws.amazon.com/AmazonS3/latest/API/API_DeletePublicAccessBlock.html',
  access: 'owner',
  action: 's3:PutBucketPublicAccessBlock',
  on: { method: 'DELETE', resource: 'bucket', query: ['publicAccessBlock'] },
  async run(request, context) {
    context.checks.requireWholeBucket(request.bucket, 'read')
    context.checks.requireWholeBucket(request.bucket, 'write')
    // A store that has lost its records cannot show whether the removal would open the bucket.
    await context.state.requireIntact()
    await context.settings.delete(request.bucket, 'publicAccessBlock')
    return noContent()
  },
})
