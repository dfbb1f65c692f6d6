import { ACL, objectGrants } from '../../policy/acl.js'
import { applyAcl, readAcl } from '../../policy/apply-acl.js'
import { defineOperation } from '../../registry/operation.js'
import { empty } from '../../response/reply.js'

import { refuseVersion } from '../common/version.js'

/** Accepts the ACL that is true: what the bucket policy lets everybody do. The gateway has no rights by bucket or object alone. */
export const putObjectAcl = defineOperation({
  name: 'PutObjectAcl',
  source: 'https://docs.aws.amazon.com/AmazonS3/latest/API/API_PutObjectAcl.html',
  partly: 'An ACL that says what the bucket policy grants (access.md); any other is AccessControlListNotSupported.',
  on: { method: 'PUT', resource: 'object', query: ['acl'], params: ['versionId'], headers: [ACL] },
  async run(request, context) {
    refuseVersion(request.query)
    context.requireKey(request.bucket, request.key, 'write')
    const asked = await readAcl(request, context)
    await context.store.head(request.bucket, request.key)
    const entries = await context.gateway.listPolicies(request.bucket)
    await applyAcl(context, request.bucket, asked, objectGrants(entries, request.key))
    return empty()
  },
})
