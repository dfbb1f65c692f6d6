import { S3Error } from '../../common/errors/s3-error.js'
import { defineOperation } from '../../plugins/forms/operation.js'
import { MAX_CORS_BYTES, readCors } from '../../response/cors/cors-document.js'
import { empty } from '../../response/reply.js'

export const putBucketCors = defineOperation({
  name: 'PutBucketCors',
  source: 'https://docs.aws.amazon.com/AmazonS3/latest/API/API_PutBucketCors.html',
  access: 'owner',
  action: 's3:PutBucketCORS',
  needs: { bucket: ['write'] },
  on: { method: 'PUT', resource: 'bucket', query: ['cors'] },
  async run(request, context) {
    const { bytes } = await request.body.collect(MAX_CORS_BYTES)
    if (bytes.length === 0) throw new S3Error('MissingRequestBodyError')
    const rules = await readCors(bytes)
    await context.settings.set(request.bucket, 'cors', rules)
    return empty()
  },
})
