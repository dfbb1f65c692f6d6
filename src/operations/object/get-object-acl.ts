import { objectGrants } from '../../policy/acl.js'
import { aclDocument } from '../../policy/acl-document.js'
import { defineOperation } from '../../registry/operation.js'
import { xml } from '../../response/reply.js'

import { refuseVersion } from '../common/version.js'

/** Shows as grants what the bucket policy lets everybody do. */
export const getObjectAcl = defineOperation({
  name: 'GetObjectAcl',
  source: 'https://docs.aws.amazon.com/AmazonS3/latest/API/API_GetObjectAcl.html',
  on: { method: 'GET', resource: 'object', query: ['acl'], params: ['versionId'] },
  async run(request, context) {
    refuseVersion(request.query)
    await context.store.head(request.bucket, request.key)
    const entries = await context.gateway.listPolicies(request.bucket)
    return xml(aclDocument(context, objectGrants(entries, request.key)))
  },
})
