import { S3Error } from '../../errors/s3-error.js'
import { configurationDocument } from '../../lifecycle/document.js'
import { defineOperation } from '../../registry/operation.js'
import { xml } from '../../response/reply.js'
import { requireBucket } from '../common/buckets.js'
import { MINIMUM_TRANSITION_SIZE } from './put-bucket-lifecycle-configuration.js'

export const getBucketLifecycleConfiguration = defineOperation({
  name: 'GetBucketLifecycleConfiguration',
  source: 'https://docs.aws.amazon.com/AmazonS3/latest/API/API_GetBucketLifecycleConfiguration.html',
  on: { method: 'GET', resource: 'bucket', query: ['lifecycle'] },
  async run(request, context) {
    context.requireWholeBucket(request.bucket, 'read')
    await requireBucket(context, request.bucket)
    const configuration = await context.settings.confirmed(request.bucket, 'lifecycle')
    if (!configuration) throw new S3Error('NoSuchLifecycleConfiguration', { fields: { BucketName: request.bucket } })
    return xml(configurationDocument(configuration), {
      [MINIMUM_TRANSITION_SIZE]: configuration.minimumTransitionSize,
    })
  },
})
