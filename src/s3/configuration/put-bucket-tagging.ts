import { S3Error } from '../../common/errors/s3-error.js'
import { defineOperation } from '../../plugins/forms/operation.js'
import { empty, noContent } from '../../response/reply.js'
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
    // As in S3, a bucket with an empty set of tags has none.
    if (tags.length === 0) await context.settings.delete(request.bucket, 'tagging')
    else await context.settings.set(request.bucket, 'tagging', tags)
    // minio-js takes 204 for a failure: https://github.com/minio/minio-js/blob/8.0.7/src/internal/client.ts (setTagging).
    return /\bminio-js\//.test(request.headers['user-agent'] ?? '') ? empty() : noContent()
  },
})
