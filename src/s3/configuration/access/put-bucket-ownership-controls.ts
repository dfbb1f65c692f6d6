import { S3Error } from '../../../common/errors/s3-error.js'
import { childText, parseXml } from '../../../common/xml/xml.js'
import { defineOperation } from '../../../plugins/forms/operation.js'
import { empty } from '../../../response/reply.js'
import { readOwnership } from '../../acl/ownership-setting.js'
import { isPrivate } from '../../acl/write-acl.js'

export const putBucketOwnershipControls = defineOperation({
  name: 'PutBucketOwnershipControls',
  source: 'https://docs.aws.amazon.com/AmazonS3/latest/API/API_PutBucketOwnershipControls.html',
  access: 'owner',
  action: 's3:PutBucketOwnershipControls',
  needs: { bucket: ['read', 'write'] },
  on: { method: 'PUT', resource: 'bucket', query: ['ownershipControls'] },
  async run({ bucket, body }, context) {
    const { settings, limits, state, door } = context
    const { bytes } = await body.collect(limits.maxDocumentBytes)
    if (bytes.length === 0) throw new S3Error('MissingRequestBodyError')
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
      await settings.set(bucket, 'objectOwnership', { ownership, ...(await door.ownerOf(bucket)) })
    }
    await state.locks.withName(`bucket-policy/${bucket}`, run, { by: context })
    return empty()
  },
})
