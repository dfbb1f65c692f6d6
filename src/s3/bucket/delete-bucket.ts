import { defineOperation } from '../../plugins/forms/operation.js'
import { noContent } from '../../response/reply.js'
import { endUploads } from '../../state/uploads/end-uploads.js'

export const deleteBucket = defineOperation({
  name: 'DeleteBucket',
  source: 'https://docs.aws.amazon.com/AmazonS3/latest/API/API_DeleteBucket.html',
  access: 'owner',
  action: 's3:DeleteBucket',
  on: { method: 'DELETE', resource: 'bucket' },
  async run(request, context) {
    const begun = Date.now()
    await context.gateway.deleteBucket(request.bucket)
    await context.settings.clear(request.bucket)
    // S3 deletes a bucket with multipart uploads in progress, unless it is a directory bucket.
    await endUploads(context.state.uploads, request.bucket, begun, context)
    return noContent()
  },
})
