import { MAX_CORS_BYTES, readCors } from '../../cors/cors-document.js'
import { S3Error } from '../../errors/s3-error.js'
import { defineOperation } from '../../registry/operation.js'
import { empty } from '../../response/reply.js'
import { requireBucket } from '../common/buckets.js'

export const putBucketCors = defineOperation({
  name: 'PutBucketCors',
  source: 'https://docs.aws.amazon.com/AmazonS3/latest/API/API_PutBucketCors.html',
  on: { method: 'PUT', resource: 'bucket', query: ['cors'] },
  async run(request, context) {
    context.requireWholeBucket(request.bucket, 'write')
    const { bytes } = await request.body.collect(MAX_CORS_BYTES)
    if (bytes.length === 0) throw new S3Error('MissingRequestBodyError')
    const rules = await readCors(bytes)
    await requireBucket(context, request.bucket)
    await context.settings.set(request.bucket, 'cors', rules)
    return empty()
  },
})
