import { document, escapeXml } from '../../common/xml/xml.js'
import { defineOperation } from '../../plugins/forms/operation.js'
import { xml } from '../../response/reply.js'
import { requireBucket } from '../vocabulary/buckets.js'

export const getBucketLocation = defineOperation({
  name: 'GetBucketLocation',
  source: 'https://docs.aws.amazon.com/AmazonS3/latest/API/API_GetBucketLocation.html',
  access: 'anonymous',
  action: 's3:GetBucketLocation',
  on: { method: 'GET', resource: 'bucket', query: ['location'] },
  async run(request, context) {
    await requireBucket(context, request.bucket)
    // "Buckets in Region us-east-1 have a LocationConstraint of null."
    return xml(
      document('LocationConstraint', context.server.region === 'us-east-1' ? '' : escapeXml(context.server.region)),
    )
  },
})
