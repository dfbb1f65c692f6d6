import { bucketGrants } from '../../policy/acl.js'
import { aclDocument } from '../../policy/acl-document.js'
import { defineOperation } from '../../registry/operation.js'
import { xml } from '../../response/reply.js'
import { requireBucket } from '../common/buckets.js'

/** Shows as grants what the bucket policy lets everybody do. */
export const getBucketAcl = defineOperation({
  name: 'GetBucketAcl',
  source: 'https://docs.aws.amazon.com/AmazonS3/latest/API/API_GetBucketAcl.html',
  on: { method: 'GET', resource: 'bucket', query: ['acl'] },
  async run(request, context) {
    context.requireWholeBucket(request.bucket, 'read')
    const entries = await context.gateway.listPolicies(request.bucket)
    if (entries.length === 0) await requireBucket(context, request.bucket)
    return xml(aclDocument(context, bucketGrants(entries)))
  },
})
