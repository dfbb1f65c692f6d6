import { defineOperation } from '../../plugins/forms/operation.js'
import { refuseVersion } from '../../request/version.js'
import { xml } from '../../response/reply.js'
import { taggingDocument } from './tagging-document.js'

/** An object without tags has an empty set; only buckets answer NoSuchTagSet. */
export const getObjectTagging = defineOperation({
  name: 'GetObjectTagging',
  source: 'https://docs.aws.amazon.com/AmazonS3/latest/API/API_GetObjectTagging.html',
  access: 'owner',
  action: 's3:GetObjectTagging',
  on: { method: 'GET', resource: 'object', query: ['tagging'], params: ['versionId'] },
  async run(request, context) {
    refuseVersion(request.query)
    const object = await context.store.head(request.bucket, request.key)
    return xml(taggingDocument(object.tags ?? []))
  },
})
