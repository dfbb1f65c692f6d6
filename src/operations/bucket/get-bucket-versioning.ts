import { defineOperation } from '../../registry/operation.js'
import { xml } from '../../response/reply.js'
import { document } from '../../xml.js'
import { requireBucket } from '../common/buckets.js'

/** An empty configuration says: never versioned. */
export const getBucketVersioning = defineOperation({
  name: 'GetBucketVersioning',
  source: 'https://docs.aws.amazon.com/AmazonS3/latest/API/API_GetBucketVersioning.html',
  partly: 'Always the empty configuration: never versioned.',
  on: { method: 'GET', resource: 'bucket', query: ['versioning'] },
  async run(request, context) {
    await requireBucket(context, request.bucket)
    return xml(document('VersioningConfiguration', ''))
  },
})
