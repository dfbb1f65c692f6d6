import { S3Error } from '../../errors/s3-error.js'
import { defineOperation } from '../../registry/operation.js'
import { requireBucket } from '../common/buckets.js'

export const getBucketWebsite = defineOperation({
  name: 'GetBucketWebsite',
  source: 'https://docs.aws.amazon.com/AmazonS3/latest/API/API_GetBucketWebsite.html',
  partly: 'There is never a configuration: NoSuchWebsiteConfiguration.',
  on: { method: 'GET', resource: 'bucket', query: ['website'] },
  async run(request, context) {
    context.requireWholeBucket(request.bucket, 'read')
    await requireBucket(context, request.bucket)
    throw new S3Error('NoSuchWebsiteConfiguration', { fields: { BucketName: request.bucket } })
  },
})
