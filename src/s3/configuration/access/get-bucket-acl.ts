import { defineOperation } from '../../../plugins/forms/operation.js'
import { xml } from '../../../response/reply.js'
import { aclXml } from '../../acl/acl-xml.js'
import { privateAcl, withPublic } from '../../acl/shown-acl.js'
import { bucketGrants } from '../../policy/acl.js'
import { readPublicAccess } from '../../policy/public-access.js'

/** Also shows what the gateway itself grants everybody. */
export const getBucketAcl = defineOperation({
  name: 'GetBucketAcl',
  source: 'https://docs.aws.amazon.com/AmazonS3/latest/API/API_GetBucketAcl.html',
  access: 'owner',
  action: 's3:GetBucketAcl',
  on: { method: 'GET', resource: 'bucket', query: ['acl'] },
  async run({ bucket }, context) {
    context.checks.requireWholeBucket(bucket, 'read')
    const { owner } = await context.door.ownerOf(bucket)
    const record = await context.settings.confirmed(bucket, 'acl')
    const enabled = (await context.door.documents(bucket))?.ownership !== 'BucketOwnerEnforced'
    const acl = enabled && record?.owner === owner ? record.acl : privateAcl(owner)
    return xml(aclXml(withPublic(acl, bucketGrants(await readPublicAccess(context, bucket))), context))
  },
})
