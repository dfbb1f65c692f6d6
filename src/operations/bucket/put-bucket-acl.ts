import { ACL, bucketGrants } from '../../policy/acl.js'
import { applyAcl, readAcl } from '../../policy/apply-acl.js'
import { defineOperation } from '../../registry/operation.js'
import { empty } from '../../response/reply.js'
import { requireBucket } from '../common/buckets.js'

/** Accepts the ACL that is true: what the bucket policy lets everybody do. The gateway has no rights by bucket or object alone. */
export const putBucketAcl = defineOperation({
  name: 'PutBucketAcl',
  source: 'https://docs.aws.amazon.com/AmazonS3/latest/API/API_PutBucketAcl.html',
  partly: 'An ACL that says what the bucket policy grants (access.md); any other is AccessControlListNotSupported.',
  on: { method: 'PUT', resource: 'bucket', query: ['acl'], headers: [ACL] },
  async run(request, context) {
    context.requireWholeBucket(request.bucket, 'read')
    context.requireWholeBucket(request.bucket, 'write')
    const asked = await readAcl(request, context)
    const entries = await context.gateway.listPolicies(request.bucket)
    if (entries.length === 0) await requireBucket(context, request.bucket)
    await applyAcl(context, request.bucket, asked, bucketGrants(entries))
    return empty()
  },
})
