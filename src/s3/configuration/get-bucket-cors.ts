import { S3Error } from '../../common/errors/s3-error.js'
import { defineOperation } from '../../plugins/forms/operation.js'
import { corsDocument } from '../../response/cors/cors-document.js'
import { xml } from '../../response/reply.js'

export const getBucketCors = defineOperation({
  name: 'GetBucketCors',
  source: 'https://docs.aws.amazon.com/AmazonS3/latest/API/API_GetBucketCors.html',
  access: 'owner',
  action: 's3:GetBucketCORS',
  on: { method: 'GET', resource: 'bucket', query: ['cors'] },
  async run(request, context) {
    context.checks.requireWholeBucket(request.bucket, 'read')
    const rules = await context.settings.confirmed(request.bucket, 'cors')
    if (!rules) throw new S3Error('NoSuchCORSConfiguration', { fields: { BucketName: request.bucket } })
    return xml(corsDocument(rules))
  },
})
