import { S3Error } from '../../common/errors/s3-error.js'
import { defineOperation } from '../../plugins/forms/operation.js'
import { xml } from '../../response/reply.js'
import { configurationDocument } from '../lifecycle/document.js'
import { MINIMUM_TRANSITION_SIZE } from './put-bucket-lifecycle-configuration.js'

export const getBucketLifecycleConfiguration = defineOperation({
  name: 'GetBucketLifecycleConfiguration',
  source: 'https://docs.aws.amazon.com/AmazonS3/latest/API/API_GetBucketLifecycleConfiguration.html',
  access: 'owner',
  action: 's3:GetLifecycleConfiguration',
  on: { method: 'GET', resource: 'bucket', query: ['lifecycle'] },
  async run(request, context) {
    context.checks.requireWholeBucket(request.bucket, 'read')
    const configuration = await context.settings.confirmed(request.bucket, 'lifecycle')
    if (!configuration) throw new S3Error('NoSuchLifecycleConfiguration', { fields: { BucketName: request.bucket } })
    return xml(configurationDocument(configuration), {
      [MINIMUM_TRANSITION_SIZE]: configuration.minimumTransitionSize,
    })
  },
})
