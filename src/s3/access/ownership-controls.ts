import { S3Error } from '../../common/errors/s3-error.js'
import { childText, document, element, parseXml } from '../../common/xml.js'
import { requireDocument } from '../../http/read-request.js'
import { empty, xml } from '../../http/reply.js'
import { defineOperation } from '../../plugins/define-plugin.js'
import { requireBucket } from '../bucket/owner.js'
import { readOwnership } from './acl-forms.js'
import { isPrivate } from './acl-operations.js'

export const getBucketOwnershipControls = defineOperation({
  name: 'GetBucketOwnershipControls',
  source: 'https://docs.aws.amazon.com/AmazonS3/latest/API/API_GetBucketOwnershipControls.html',
  access: 'signed',
  action: 's3:GetBucketOwnershipControls',
  on: { method: 'GET', resource: 'bucket', query: ['ownershipControls'] },
  async run(request, context) {
    context.checks.requireWholeBucket(request.bucket, 'read')
    await requireBucket(context, request.bucket)
    const ownership = (await context.authorizer.documents(request.bucket))?.ownership ?? 'BucketOwnerEnforced'
    return xml(document('OwnershipControls', `<Rule>${element('ObjectOwnership', ownership)}</Rule>`))
  },
})

export const putBucketOwnershipControls = defineOperation({
  name: 'PutBucketOwnershipControls',
  source: 'https://docs.aws.amazon.com/AmazonS3/latest/API/API_PutBucketOwnershipControls.html',
  access: 'owner',
  action: 's3:PutBucketOwnershipControls',
  needs: { bucket: ['read', 'write'] },
  on: { method: 'PUT', resource: 'bucket', query: ['ownershipControls'] },
  async run({ bucket, body }, context) {
    const { settings, limits, state, authorizer } = context
    const bytes = await requireDocument(body, limits.maxDocumentBytes)
    const rules = (await parseXml(bytes, 'OwnershipControls')).children.get('Rule') ?? []
    const [rule] = rules
    if (!rule || rules.length > 1) throw new S3Error('MalformedXML', { message: 'OwnershipControls has one Rule.' })
    const ownership = readOwnership(childText(rule, 'ObjectOwnership') ?? '', 'MalformedXML')
    const run = async () => {
      if (ownership === 'BucketOwnerEnforced') {
        const record = await settings.confirmed(bucket, 'acl')
        if (record && !isPrivate(record.acl)) throw new S3Error('InvalidBucketAclWithObjectOwnership')
        await settings.delete(bucket, 'objectOwnership')
        return
      }
      // Stored ACLs take effect: a store that has lost its records could not show which.
      await state.requireIntact()
      await settings.set(bucket, 'objectOwnership', { ownership, ...(await authorizer.ownerOf(bucket)) })
    }
    await state.locks.withName(`bucket-policy/${bucket}`, run, { by: context })
    return empty()
  },
})
