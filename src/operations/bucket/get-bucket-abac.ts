import { defineOperation } from '../../registry/operation.js'
import { xml } from '../../response/reply.js'
import { document } from '../../xml.js'
import { requireBucket } from '../common/buckets.js'

/** Access by tags is off, as in every bucket of S3 where nobody has switched it on. */
export const getBucketAbac = defineOperation({
  name: 'GetBucketAbac',
  source: 'https://docs.aws.amazon.com/AmazonS3/latest/API/API_GetBucketAbac.html',
  partly: 'Always Disabled.',
  on: { method: 'GET', resource: 'bucket', query: ['abac'] },
  async run(request, context) {
    context.requireWholeBucket(request.bucket, 'read')
    await requireBucket(context, request.bucket)
    return xml(document('AbacStatus', '<Status>Disabled</Status>'))
  },
})
