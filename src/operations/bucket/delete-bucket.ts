import { defineOperation } from '../../registry/operation.js'
import { noContent } from '../../response/reply.js'

export const deleteBucket = defineOperation({
  name: 'DeleteBucket',
  source: 'https://docs.aws.amazon.com/AmazonS3/latest/API/API_DeleteBucket.html',
  on: { method: 'DELETE', resource: 'bucket' },
  async run(request, context) {
    await context.gateway.deleteBucket(request.bucket)
    await context.settings.clear(request.bucket)
    return noContent()
  },
})
