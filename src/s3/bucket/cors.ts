import { corsDocument, MAX_CORS_BYTES, readCors } from '../../http/cors.js'
import { xml } from '../../http/reply.js'
import { bucketSetting } from './bucket-setting.js'

export const bucketCors = bucketSetting({
  name: 'BucketCors',
  subresource: 'cors',
  action: 'BucketCORS',
  get: {
    async run({ bucket }, { settings }) {
      const rules = await settings.confirmed(bucket, 'cors')
      return rules ? xml(corsDocument(rules)) : 'NoSuchCORSConfiguration'
    },
  },
  put: {
    maxBytes: MAX_CORS_BYTES,
    async run(document, { bucket }, { settings }) {
      await settings.set(bucket, 'cors', await readCors(document))
      return undefined
    },
  },
  remove: { run: (bucket, { settings }) => settings.delete(bucket, 'cors') },
})
