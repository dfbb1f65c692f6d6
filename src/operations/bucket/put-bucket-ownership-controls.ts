import { S3Error } from '../../errors/s3-error.js'
import { requireOwnerEnforced } from '../../policy/ownership.js'
import { defineOperation } from '../../registry/operation.js'
import { empty } from '../../response/reply.js'
import { childText, parseXml } from '../../xml.js'
import { requireBucket } from '../common/buckets.js'

export const putBucketOwnershipControls = defineOperation({
  name: 'PutBucketOwnershipControls',
  source: 'https://docs.aws.amazon.com/AmazonS3/latest/API/API_PutBucketOwnershipControls.html',
  partly: 'BucketOwnerEnforced, which is always so; others are NotImplemented.',
  on: { method: 'PUT', resource: 'bucket', query: ['ownershipControls'] },
  async run(request, context) {
    context.requireWholeBucket(request.bucket, 'write')
    const { bytes } = await request.body.collect(context.limits.maxDocumentBytes)
    if (bytes.length === 0) throw new S3Error('MissingRequestBodyError')
    const rules = (await parseXml(bytes, 'OwnershipControls')).children.get('Rule') ?? []
    const [rule] = rules
    if (!rule || rules.length > 1) throw new S3Error('MalformedXML', { message: 'OwnershipControls has one Rule.' })
    requireOwnerEnforced(childText(rule, 'ObjectOwnership') ?? '')
    await requireBucket(context, request.bucket)
    return empty()
  },
})
