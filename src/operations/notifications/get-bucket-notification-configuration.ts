import { configurationDocument } from '../../notifications/document.js'
import { defineOperation } from '../../registry/operation.js'
import { xml } from '../../response/reply.js'
import { requireBucket } from '../common/buckets.js'

export const getBucketNotificationConfiguration = defineOperation({
  name: 'GetBucketNotificationConfiguration',
  source: 'https://docs.aws.amazon.com/AmazonS3/latest/API/API_GetBucketNotificationConfiguration.html',
  on: { method: 'GET', resource: 'bucket', query: ['notification'] },
  async run(request, context) {
    context.requireWholeBucket(request.bucket, 'read')
    await requireBucket(context, request.bucket)
    const configuration = await context.settings.confirmed(request.bucket, 'notifications')
    return xml(configurationDocument(configuration?.rules ?? []))
  },
})
