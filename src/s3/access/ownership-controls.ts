import { S3Error } from '../../../common/errors/s3-error.js'
import { childText, document, element, parseXml, requireChildren } from '../../../common/xml.js'
import { readOwnership } from '../../access/values/acl-values.js'
import { xml } from '../../http/reply.js'
import { bucketSetting } from '../bucket/bucket-setting.js'
import { isPrivate } from './acl-operations.js'

export const bucketOwnershipControls = bucketSetting({
  name: 'BucketOwnershipControls',
  subresource: 'ownershipControls',
  action: 'BucketOwnershipControls',
  aboutAccess: true,
  get: {
    access: 'signed',
    async run({ bucket }, { authorizer, settings }) {
      const documents = await authorizer.documents(bucket)
      const ownership = documents?.ownership ?? 'BucketOwnerEnforced'
      const record = await settings.get(bucket, 'objectOwnership')
      if (record?.removed && record.owner === documents?.owner) return 'OwnershipControlsNotFoundError'
      return xml(document('OwnershipControls', `<Rule>${element('ObjectOwnership', ownership)}</Rule>`))
    },
  },
  put: {
    async run(bytes, { bucket }, context) {
      const { settings, state, authorizer } = context
      const root = await parseXml(bytes, 'OwnershipControls')
      requireChildren(root, 'OwnershipControls', { once: ['Rule'] })
      const rule = root.children.get('Rule')?.[0]
      if (!rule) throw new S3Error('MalformedXML', { message: 'OwnershipControls has one Rule.' })
      requireChildren(rule, 'Rule', { once: ['ObjectOwnership'] })
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
      await state.locks.withName(`bucket-policy/${bucket}`, run, { logger: context })
      return undefined
    },
  },
  remove: {
    async run(bucket, context) {
      const { settings, state, authorizer } = context
      const run = async () => {
        // The store must be intact, as for a change to ObjectWriter.
        await state.requireIntact()
        const removed = { ownership: 'ObjectWriter', removed: true } as const
        await settings.set(bucket, 'objectOwnership', { ...removed, ...(await authorizer.ownerOf(bucket)) })
      }
      await state.locks.withName(`bucket-policy/${bucket}`, run, { logger: context })
    },
  },
})
