import { S3Error } from '../../errors/s3-error.js'
import { defineOperation } from '../../registry/operation.js'
import { xml } from '../../response/reply.js'
import { taggingDocument } from '../../tagging/tagging-document.js'
import { requireBucket } from '../common/buckets.js'

export const getBucketTagging = defineOperation({
  name: 'GetBucketTagging',
  source: 'https://docs.aws.amazon.com/AmazonS3/latest/API/API_GetBucketTagging.html',
  on: { method: 'GET', resource: 'bucket', query: ['tagging'] },
  async run(request, context) {
    context.requireWholeBucket(request.bucket, 'read')
    await requireBucket(context, request.bucket)
    const tags = await context.settings.confirmed(request.bucket, 'tagging')
    if (!tags) throw new S3Error('NoSuchTagSet', { fields: { BucketName: request.bucket } })
    return xml(taggingDocument(tags))
  },
})
