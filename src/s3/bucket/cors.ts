import { S3Error } from '../../common/errors/s3-error.js'
import { corsDocument, MAX_CORS_BYTES, readCors } from '../../http/cors.js'
import { requireDocument } from '../../http/read-request.js'
import { empty, noContent, xml } from '../../http/reply.js'
import { defineOperation } from '../../plugins/define-plugin.js'

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

export const putBucketCors = defineOperation({
  name: 'PutBucketCors',
  source: 'https://docs.aws.amazon.com/AmazonS3/latest/API/API_PutBucketCors.html',
  access: 'owner',
  action: 's3:PutBucketCORS',
  needs: { bucket: ['write'] },
  on: { method: 'PUT', resource: 'bucket', query: ['cors'] },
  async run(request, context) {
    const bytes = await requireDocument(request.body, MAX_CORS_BYTES)
    const rules = await readCors(bytes)
    await context.settings.set(request.bucket, 'cors', rules)
    return empty()
  },
})

export const deleteBucketCors = defineOperation({
  name: 'DeleteBucketCors',
  source: 'https://docs.aws.amazon.com/AmazonS3/latest/API/API_DeleteBucketCors.html',
  access: 'owner',
  action: 's3:PutBucketCORS',
  on: { method: 'DELETE', resource: 'bucket', query: ['cors'] },
  async run(request, context) {
    context.checks.requireWholeBucket(request.bucket, 'write')
    await context.settings.delete(request.bucket, 'cors')
    return noContent()
  },
})
