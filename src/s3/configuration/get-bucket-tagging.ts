import { S3Error } from '../../common/errors/s3-error.js'
import { defineOperation } from '../../plugins/forms/operation.js'
import { xml } from '../../response/reply.js'
import { taggingDocument } from '../tagging/tagging-document.js'

export const getBucketTagging = defineOperation({
  name: 'GetBucketTagging',
  source: 'https://docs.aws.amazon.com/AmazonS3/latest/API/API_GetBucketTagging.html',
  access: 'owner',
  action: 's3:GetBucketTagging',
  on: { method: 'GET', resource: 'bucket', query: ['tagging'] },
  async run(request, context) {
    context.checks.requireWholeBucket(request.bucket, 'read')
    const tags = await context.settings.confirmed(request.bucket, 'tagging')
    if (!tags) throw new S3Error('NoSuchTagSet', { fields: { BucketName: request.bucket } })
    return xml(taggingDocument(tags))
  },
})
