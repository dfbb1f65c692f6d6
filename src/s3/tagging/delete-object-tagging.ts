import { defineOperation } from '../../plugins/forms/operation.js'
import { refuseVersion } from '../../request/version.js'
import { noContent } from '../../response/reply.js'
import { causeOf } from '../vocabulary/cause.js'

export const deleteObjectTagging = defineOperation({
  name: 'DeleteObjectTagging',
  source: 'https://docs.aws.amazon.com/AmazonS3/latest/API/API_DeleteObjectTagging.html',
  access: 'owner',
  action: 's3:DeleteObjectTagging',
  on: { method: 'DELETE', resource: 'object', query: ['tagging'], params: ['versionId'] },
  async run(request, context) {
    refuseVersion(request.query)
    const cause = causeOf('ObjectTagging:Delete', request, context)
    await context.store.setTags(request.bucket, request.key, undefined, cause)
    return noContent()
  },
})
