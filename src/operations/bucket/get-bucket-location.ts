import { defineOperation } from '../../registry/operation.js'
import { xml } from '../../response/reply.js'
import { document, escapeXml } from '../../xml.js'
import { requireBucket } from '../common/buckets.js'

export const getBucketLocation = defineOperation({
  name: 'GetBucketLocation',
  source: 'https://docs.aws.amazon.com/AmazonS3/latest/API/API_GetBucketLocation.html',
  access: 'anonymous',
  on: { method: 'GET', resource: 'bucket', query: ['location'] },
  async run(request, context) {
    await requireBucket(context, request.bucket)
    // "Buckets in Region us-east-1 have a LocationConstraint of null."
    return xml(document('LocationConstraint', context.region === 'us-east-1' ? '' : escapeXml(context.region)))
  },
})
