import { S3Error } from '../../common/errors/s3-error.js'
import { childText, parseXml } from '../../common/xml/xml.js'
import { defineOperation } from '../../plugins/forms/operation.js'
import { empty } from '../../response/reply.js'

/** Accepts BucketOwner, which is always the payer. */
export const putBucketRequestPayment = defineOperation({
  name: 'PutBucketRequestPayment',
  source: 'https://docs.aws.amazon.com/AmazonS3/latest/API/API_PutBucketRequestPayment.html',
  partly: 'BucketOwner, which is always so; Requester is NotImplemented.',
  access: 'owner',
  action: 's3:PutBucketRequestPayment',
  needs: { bucket: ['write'] },
  on: { method: 'PUT', resource: 'bucket', query: ['requestPayment'] },
  async run(request, context) {
    const { bytes } = await request.body.collect(context.limits.maxDocumentBytes)
    if (bytes.length === 0) throw new S3Error('MissingRequestBodyError')
    const payer = childText(await parseXml(bytes, 'RequestPaymentConfiguration'), 'Payer')
    if (payer === 'Requester')
      throw new S3Error('NotImplemented', { message: 'Requester pays is not implemented: Payer must be BucketOwner.' })
    if (payer !== 'BucketOwner')
      throw new S3Error('MalformedXML', { message: 'Payer must be BucketOwner or Requester.' })
    return empty()
  },
})
