import { S3Error } from '../../errors/s3-error.js'
import { defineOperation } from '../../registry/operation.js'
import { requireBucket } from '../common/buckets.js'

export const getObjectLockConfiguration = defineOperation({
  name: 'GetObjectLockConfiguration',
  source: 'https://docs.aws.amazon.com/AmazonS3/latest/API/API_GetObjectLockConfiguration.html',
  partly: 'There is never a configuration: ObjectLockConfigurationNotFoundError.',
  on: { method: 'GET', resource: 'bucket', query: ['object-lock'] },
  async run(request, context) {
    context.requireWholeBucket(request.bucket, 'read')
    await requireBucket(context, request.bucket)
    throw new S3Error('ObjectLockConfigurationNotFoundError', { fields: { BucketName: request.bucket } })
  },
})
