import { S3Error } from '../../common/errors/s3-error.js'
import { xml } from '../../http/reply.js'
import { bucketSetting } from '../bucket/bucket-setting.js'
import { readWebsite, websiteDocument } from './configuration.js'

export const bucketWebsite = bucketSetting({
  name: 'BucketWebsite',
  subresource: 'website',
  action: 'BucketWebsite',
  get: {
    async run({ bucket }, { settings }) {
      const website = await settings.confirmed(bucket, 'website')
      return website ? xml(websiteDocument(website)) : 'NoSuchWebsiteConfiguration'
    },
  },
  put: {
    partly: 'NotImplemented without a port for websites (website.md).',
    async run(bytes, { bucket }, context) {
      if (!context.server.websites)
        throw new S3Error('NotImplemented', {
          message: 'Buckets are not served as websites here: that needs a port of its own (--website-port).',
        })
      await context.settings.set(bucket, 'website', await readWebsite(bytes))
      return undefined
    },
  },
  remove: {
    action: 'DeleteBucketWebsite',
    run: (bucket, { settings }) => settings.delete(bucket, 'website'),
  },
})
