import { defineOperation } from '../../registry/operation.js'
import { noContent } from '../../response/reply.js'
import { requireBucket } from '../common/buckets.js'

export const deletePublicAccessBlock = defineOperation({
  name: 'DeletePublicAccessBlock',
  source: 'https://docs.aws.amazon.com/AmazonS3/latest/API/API_DeletePublicAccessBlock.html',
  on: { method: 'DELETE', resource: 'bucket', query: ['publicAccessBlock'] },
  async run(request, context) {
    context.requireWholeBucket(request.bucket, 'read')
    context.requireWholeBucket(request.bucket, 'write')
    await requireBucket(context, request.bucket)
    await context.settings.delete(request.bucket, 'publicAccessBlock')
    return noContent()
  },
})
