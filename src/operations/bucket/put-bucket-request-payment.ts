import { S3Error } from '../../errors/s3-error.js'
import { defineOperation } from '../../registry/operation.js'
import { empty } from '../../response/reply.js'
import { childText, parseXml } from '../../xml.js'
import { requireBucket } from '../common/buckets.js'

/** The owner pays, whatever is said: saying so changes nothing and is no error. */
export const putBucketRequestPayment = defineOperation({
  name: 'PutBucketRequestPayment',
  source: 'https://docs.aws.amazon.com/AmazonS3/latest/API/API_PutBucketRequestPayment.html',
  partly: 'BucketOwner, which is always so; Requester is NotImplemented.',
  on: { method: 'PUT', resource: 'bucket', query: ['requestPayment'] },
  async run(request, context) {
    context.requireWholeBucket(request.bucket, 'write')
    const { bytes } = await request.body.collect(context.limits.maxDocumentBytes)
    if (bytes.length === 0) throw new S3Error('MissingRequestBodyError')
    const payer = childText(await parseXml(bytes, 'RequestPaymentConfiguration'), 'Payer')
    if (payer === 'Requester')
      throw new S3Error('NotImplemented', { message: 'Requesters cannot be made to pay: Payer must be BucketOwner.' })
    if (payer !== 'BucketOwner')
      throw new S3Error('MalformedXML', { message: 'Payer must be BucketOwner or Requester.' })
    await requireBucket(context, request.bucket)
    return empty()
  },
})
