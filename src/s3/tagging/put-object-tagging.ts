import { S3Error } from '../../common/errors/s3-error.js'
import { defineOperation } from '../../plugins/forms/operation.js'
import { refuseVersion } from '../../request/version.js'
import { empty } from '../../response/reply.js'
import { causeOf } from '../vocabulary/cause.js'
import { OBJECT_TAGS } from './tag-rules.js'
import { readTagging } from './tagging-document.js'

export const putObjectTagging = defineOperation({
  name: 'PutObjectTagging',
  source: 'https://docs.aws.amazon.com/AmazonS3/latest/API/API_PutObjectTagging.html',
  access: 'owner',
  action: 's3:PutObjectTagging',
  needs: { key: 'write' },
  on: { method: 'PUT', resource: 'object', query: ['tagging'], params: ['versionId'] },
  async run(request, context) {
    refuseVersion(request.query)
    const { bytes } = await request.body.collect(context.limits.maxDocumentBytes)
    if (bytes.length === 0) throw new S3Error('MissingRequestBodyError')
    const tags = await readTagging(bytes, OBJECT_TAGS)
    // The decision before the body was read could not know the tags.
    const { bucket, key } = request
    await context.door.decide({ action: 's3:PutObjectTagging', bucket, key, more: { requested: tags } })
    await context.store.setTags(request.bucket, request.key, tags, causeOf('ObjectTagging:Put', request, context))
    return empty()
  },
})
