import { defineOperation } from '../../registry/operation.js'
import { xml } from '../../response/reply.js'
import { taggingDocument } from '../../tagging/tagging-document.js'
import { refuseVersion } from '../common/version.js'

/** An object without tags has an empty set; only buckets have NoSuchTagSet. */
export const getObjectTagging = defineOperation({
  name: 'GetObjectTagging',
  source: 'https://docs.aws.amazon.com/AmazonS3/latest/API/API_GetObjectTagging.html',
  on: { method: 'GET', resource: 'object', query: ['tagging'], params: ['versionId'] },
  async run(request, context) {
    refuseVersion(request.query)
    const object = await context.store.head(request.bucket, request.key)
    return xml(taggingDocument(object.tags ?? []))
  },
})
