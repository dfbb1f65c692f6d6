import { defineOperation } from '../../plugins/forms/operation.js'
import { noContent } from '../../response/reply.js'
import { requireUpload } from './upload.js'

const ABORT = 's3:AbortMultipartUpload'

export const abortMultipartUpload = defineOperation({
  name: 'AbortMultipartUpload',
  source: 'https://docs.aws.amazon.com/AmazonS3/latest/API/API_AbortMultipartUpload.html',
  access: 'signed',
  action: ABORT,
  keeps: 'uploads',
  on: { method: 'DELETE', resource: 'object', query: ['uploadId'] },
  async run(request, context) {
    const upload = await requireUpload(request, context, ABORT)
    // The lock waits for a completion in progress, which reads the parts.
    const run = async () => {
      await requireUpload(request, context, ABORT)
      await context.state.uploads.abort(upload.uploadId, context)
    }
    await context.state.locks.withName(`complete/${upload.uploadId}`, run, { by: context })
    return noContent()
  },
})
