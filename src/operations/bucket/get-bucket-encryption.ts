import { S3Error } from '../../errors/s3-error.js'
import { defineOperation } from '../../registry/operation.js'
import { requireBucket } from '../common/buckets.js'

export const getBucketEncryption = defineOperation({
  name: 'GetBucketEncryption',
  source: 'https://docs.aws.amazon.com/AmazonS3/latest/API/API_GetBucketEncryption.html',
  partly: 'There is never a configuration: ServerSideEncryptionConfigurationNotFoundError.',
  on: { method: 'GET', resource: 'bucket', query: ['encryption'] },
  async run(request, context) {
    context.requireWholeBucket(request.bucket, 'read')
    await requireBucket(context, request.bucket)
    throw new S3Error('ServerSideEncryptionConfigurationNotFoundError', { fields: { BucketName: request.bucket } })
  },
})
