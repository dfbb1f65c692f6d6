import { S3Error } from '../../errors/s3-error.js'
import { defineOperation } from '../../registry/operation.js'
import { noContent } from '../../response/reply.js'
import { causeOf } from '../common/cause.js'
import { listsEtag } from '../common/etags.js'
import { refuseVersion } from '../common/version.js'

export const deleteObject = defineOperation({
  name: 'DeleteObject',
  source: 'https://docs.aws.amazon.com/AmazonS3/latest/API/API_DeleteObject.html',
  partly: 'The one version is "null". Conditions on size and time, for directory buckets, are NotImplemented.',
  access: 'anonymous',
  on: { method: 'DELETE', resource: 'object', params: ['versionId'] },
  async run(request, context) {
    refuseVersion(request.query)
    const match = request.headers['if-match']
    await context.store.remove(
      request.bucket,
      request.key,
      causeOf('ObjectRemoved:Delete', request, context),
      match === undefined
        ? undefined
        : (current) => {
            if (!current) throw new S3Error('NoSuchKey')
            if (!listsEtag(match, current.etag))
              throw new S3Error('PreconditionFailed', { fields: { Condition: 'If-Match' } })
          },
    )
    return noContent()
  },
})
