import { corsDocument } from '../../cors/cors-document.js'
import { S3Error } from '../../errors/s3-error.js'
import { defineOperation } from '../../registry/operation.js'
import { xml } from '../../response/reply.js'
import { requireBucket } from '../common/buckets.js'

export const getBucketCors = defineOperation({
  name: 'GetBucketCors',
  source: 'https://docs.aws.amazon.com/AmazonS3/latest/API/API_GetBucketCors.html',
  on: { method: 'GET', resource: 'bucket', query: ['cors'] },
  async run(request, context) {
    context.requireWholeBucket(request.bucket, 'read')
    await requireBucket(context, request.bucket)
    const rules = await context.settings.confirmed(request.bucket, 'cors')
    if (!rules) throw new S3Error('NoSuchCORSConfiguration', { fields: { BucketName: request.bucket } })
    return xml(corsDocument(rules))
  },
})
