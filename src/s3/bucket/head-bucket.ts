import { defineOperation } from '../../plugins/forms/operation.js'
import { empty } from '../../response/reply.js'
import { requireBucket } from '../vocabulary/buckets.js'

export const headBucket = defineOperation({
  name: 'HeadBucket',
  source: 'https://docs.aws.amazon.com/AmazonS3/latest/API/API_HeadBucket.html',
  access: 'anonymous',
  action: 's3:ListBucket',
  on: { method: 'HEAD', resource: 'bucket' },
  async run(request, context) {
    await requireBucket(context, request.bucket)
    return empty({ 'content-type': 'application/xml', 'x-amz-bucket-region': context.server.region })
  },
})
