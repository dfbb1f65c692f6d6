import { S3Error } from '../../errors/s3-error.js'
import { defineOperation } from '../../registry/operation.js'
import { empty } from '../../response/reply.js'
import { OBJECT_TAGS } from '../../tagging/tag-rules.js'
import { readTagging } from '../../tagging/tagging-document.js'
import { causeOf } from '../common/cause.js'
import { refuseVersion } from '../common/version.js'

export const putObjectTagging = defineOperation({
  name: 'PutObjectTagging',
  source: 'https://docs.aws.amazon.com/AmazonS3/latest/API/API_PutObjectTagging.html',
  on: { method: 'PUT', resource: 'object', query: ['tagging'], params: ['versionId'] },
  async run(request, context) {
    refuseVersion(request.query)
    const { bytes } = await request.body.collect(context.limits.maxDocumentBytes)
    if (bytes.length === 0) throw new S3Error('MissingRequestBodyError')
    const tags = await readTagging(bytes, OBJECT_TAGS)
    await context.store.setTags(request.bucket, request.key, tags, causeOf('ObjectTagging:Put', request, context))
    return empty()
  },
})
