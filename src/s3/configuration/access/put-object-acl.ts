import { S3Error } from '../../../common/errors/s3-error.js'
import { defineOperation } from '../../../plugins/forms/operation.js'
import { refuseVersion } from '../../../request/version.js'
import { empty } from '../../../response/reply.js'
import { ACL_HEADERS } from '../../acl/acl-headers.js'
import { readNewAcl } from '../../acl/put-acl.js'
import { isPrivate, refuseBlockedAcl, refuseGrants } from '../../acl/write-acl.js'
import { objectGrants } from '../../policy/acl.js'
import { applyAcl, readAcl } from '../../policy/apply-acl.js'
import { readObjectAccess } from '../../policy/public-access.js'

/** Where ACLs are disabled, accepts only an ACL that says what is the case anyway. */
export const putObjectAcl = defineOperation({
  name: 'PutObjectAcl',
  source: 'https://docs.aws.amazon.com/AmazonS3/latest/API/API_PutObjectAcl.html',
  partly: 'Accounts have no e-mail addresses to grant to.',
  access: 'owner',
  action: 's3:PutObjectAcl',
  needs: { key: 'write' },
  on: { method: 'PUT', resource: 'object', query: ['acl'], params: ['versionId'], headers: ACL_HEADERS },
  async run(request, context) {
    refuseVersion(request.query)
    const { bucket, key } = request
    const documents = await context.door.documents(bucket)
    if (!documents || documents.ownership === 'BucketOwnerEnforced') {
      refuseGrants(request.headers)
      const asked = await readAcl(request, context)
      await context.store.head(bucket, key)
      await applyAcl(context, bucket, asked, objectGrants(await readObjectAccess(context, bucket, key), key))
      return empty()
    }
    const object = await context.store.head(bucket, key)
    const owner = object.acl?.owner ?? documents.owner
    const acl = await readNewAcl(request, context, { owner, bucketOwner: documents.owner }, 'object')
    await refuseBlockedAcl(context, bucket, acl)
    await context.state.requireIntact()
    const own = owner === documents.owner && isPrivate(acl)
    if (!(await context.store.setAcl(bucket, key, object.stamp, own ? undefined : acl))) {
      throw new S3Error('OperationAborted', { message: 'The object was replaced while its ACL was set. Try again.' })
    }
    return empty()
  },
})
