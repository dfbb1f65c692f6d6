import { defineOperation } from '../../../plugins/forms/operation.js'
import { empty } from '../../../response/reply.js'
import { ACL_HEADERS } from '../../acl/acl-headers.js'
import { readNewAcl } from '../../acl/put-acl.js'
import { refuseBlockedAcl, refuseGrants } from '../../acl/write-acl.js'
import { bucketGrants } from '../../policy/acl.js'
import { applyAcl, readAcl } from '../../policy/apply-acl.js'
import { readPublicAccess } from '../../policy/public-access.js'

/** Where ACLs are disabled, accepts only an ACL that says what is the case anyway. */
export const putBucketAcl = defineOperation({
  name: 'PutBucketAcl',
  source: 'https://docs.aws.amazon.com/AmazonS3/latest/API/API_PutBucketAcl.html',
  partly: 'Accounts have no e-mail addresses to grant to.',
  access: 'owner',
  action: 's3:PutBucketAcl',
  needs: { bucket: ['read', 'write'] },
  on: { method: 'PUT', resource: 'bucket', query: ['acl'], headers: ACL_HEADERS },
  async run(request, context) {
    const { bucket } = request
    const documents = await context.door.documents(bucket)
    if (!documents || documents.ownership === 'BucketOwnerEnforced') {
      refuseGrants(request.headers)
      const asked = await readAcl(request, context)
      await applyAcl(context, bucket, asked, bucketGrants(await readPublicAccess(context, bucket)))
      return empty()
    }
    const { owner } = documents
    const acl = await readNewAcl(request, context, { owner, bucketOwner: owner }, 'bucket')
    const run = async () => {
      await refuseBlockedAcl(context, bucket, acl)
      await context.state.requireIntact()
      await context.settings.set(bucket, 'acl', { acl, ...(await context.door.ownerOf(bucket)) })
    }
    await context.state.locks.withName(`bucket-policy/${bucket}`, run, { by: context })
    return empty()
  },
})
