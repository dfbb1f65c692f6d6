import { defineOperation } from '../../../plugins/forms/operation.js'
import { refuseVersion } from '../../../request/version.js'
import { xml } from '../../../response/reply.js'
import { aclXml } from '../../acl/acl-xml.js'
import { privateAcl, withPublic } from '../../acl/shown-acl.js'
import { objectGrants } from '../../policy/acl.js'
import { readObjectAccess } from '../../policy/public-access.js'

/** Also shows what the gateway itself grants everybody. */
export const getObjectAcl = defineOperation({
  name: 'GetObjectAcl',
  source: 'https://docs.aws.amazon.com/AmazonS3/latest/API/API_GetObjectAcl.html',
  access: 'owner',
  action: 's3:GetObjectAcl',
  on: { method: 'GET', resource: 'object', query: ['acl'], params: ['versionId'] },
  async run(request, context) {
    refuseVersion(request.query)
    const { bucket, key } = request
    const object = await context.store.head(bucket, key)
    const { owner } = await context.door.ownerOf(bucket)
    const ownership = (await context.door.documents(bucket))?.ownership ?? 'BucketOwnerEnforced'
    const acl = (ownership !== 'BucketOwnerEnforced' && object.acl) || privateAcl(owner)
    return xml(aclXml(withPublic(acl, objectGrants(await readObjectAccess(context, bucket, key), key)), context))
  },
})
