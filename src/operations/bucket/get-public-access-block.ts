import { S3Error } from '../../errors/s3-error.js'
import { BLOCKS } from '../../policy/public-access-block.js'
import { defineOperation } from '../../registry/operation.js'
import { xml } from '../../response/reply.js'
import { document, element } from '../../xml.js'
import { requireBucket } from '../common/buckets.js'

export const getPublicAccessBlock = defineOperation({
  name: 'GetPublicAccessBlock',
  source: 'https://docs.aws.amazon.com/AmazonS3/latest/API/API_GetPublicAccessBlock.html',
  on: { method: 'GET', resource: 'bucket', query: ['publicAccessBlock'] },
  async run(request, context) {
    context.requireWholeBucket(request.bucket, 'read')
    await requireBucket(context, request.bucket)
    const block = await context.settings.confirmed(request.bucket, 'publicAccessBlock')
    if (!block) throw new S3Error('NoSuchPublicAccessBlockConfiguration', { fields: { BucketName: request.bucket } })
    return xml(document('PublicAccessBlockConfiguration', BLOCKS.map((name) => element(name, block[name])).join('')))
  },
})
