import { defineOperation } from '../../../plugins/forms/operation.js'
import { xml } from '../../../response/reply.js'
import { configurationDocument } from '../document.js'

export const getBucketNotificationConfiguration = defineOperation({
  name: 'GetBucketNotificationConfiguration',
  source: 'https://docs.aws.amazon.com/AmazonS3/latest/API/API_GetBucketNotificationConfiguration.html',
  access: 'owner',
  action: 's3:GetBucketNotification',
  on: { method: 'GET', resource: 'bucket', query: ['notification'] },
  async run(request, context) {
    context.checks.requireWholeBucket(request.bucket, 'read')
    const configuration = await context.settings.confirmed(request.bucket, 'notifications')
    return xml(configurationDocument(configuration?.rules ?? []))
  },
})
