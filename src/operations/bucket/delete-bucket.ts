import { defineOperation } from '../../registry/operation.js'
import { noContent } from '../../response/reply.js'
import { endUploads } from '../../state/end-uploads.js'

export const deleteBucket = defineOperation({
  name: 'DeleteBucket',
  source: 'https://docs.aws.amazon.com/AmazonS3/latest/API/API_DeleteBucket.html',
  on: { method: 'DELETE', resource: 'bucket' },
  async run(request, context) {
    const begun = Date.now()
    await context.gateway.deleteBucket(request.bucket)
    await context.settings.clear(request.bucket)
    // A bucket of S3 may be deleted while it has uploads under way; only a directory bucket may not.
    await endUploads(context.state.uploads, request.bucket, begun)
    return noContent()
  },
})
