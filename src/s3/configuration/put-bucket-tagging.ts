import { S3Error } from '../../common/errors/s3-error.js'
import { defineOperation } from '../../plugins/forms/operation.js'
import { empty } from '../../response/reply.js'
import { BUCKET_TAGS } from '../tagging/tag-rules.js'
import { readTagging } from '../tagging/tagging-document.js'

export const putBucketTagging = defineOperation({
  name: 'PutBucketTagging',
  source: 'https://docs.aws.amazon.com/AmazonS3/latest/API/API_PutBucketTagging.html',
  access: 'owner',
  action: 's3:PutBucketTagging',
  needs: { bucket: ['write'] },
  on: { method: 'PUT', resource: 'bucket', query: ['tagging'] },
  async run(request, context) {
    const { bytes } = await request.body.collect(context.limits.maxDocumentBytes)
    if (bytes.length === 0) throw new S3Error('MissingRequestBodyError')
    const tags = await readTagging(bytes, BUCKET_TAGS)
    await context.settings.set(request.bucket, 'tagging', tags)
    return empty()
  },
})
