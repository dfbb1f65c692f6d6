import { S3Error } from '../../errors/s3-error.js'
import { defineOperation } from '../../registry/operation.js'
import { requireBucket } from '../common/buckets.js'

export const getBucketReplication = defineOperation({
  name: 'GetBucketReplication',
  source: 'https://docs.aws.amazon.com/AmazonS3/latest/API/API_GetBucketReplication.html',
  partly: 'There is never a configuration: ReplicationConfigurationNotFoundError.',
  on: { method: 'GET', resource: 'bucket', query: ['replication'] },
  async run(request, context) {
    context.requireWholeBucket(request.bucket, 'read')
    await requireBucket(context, request.bucket)
    throw new S3Error('ReplicationConfigurationNotFoundError', { fields: { BucketName: request.bucket } })
  },
})
