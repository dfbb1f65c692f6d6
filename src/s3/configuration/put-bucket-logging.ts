import { S3Error } from '../../common/errors/s3-error.js'
import { parseXml } from '../../common/xml/xml.js'
import { defineOperation } from '../../plugins/forms/operation.js'
import { empty } from '../../response/reply.js'

/** Accepts the empty status, which turns logging off; it is always off. */
export const putBucketLogging = defineOperation({
  name: 'PutBucketLogging',
  source: 'https://docs.aws.amazon.com/AmazonS3/latest/API/API_PutBucketLogging.html',
  partly: 'The empty status, which is always so; LoggingEnabled is NotImplemented.',
  access: 'owner',
  action: 's3:PutBucketLogging',
  needs: { bucket: ['write'] },
  on: { method: 'PUT', resource: 'bucket', query: ['logging'] },
  async run(request, context) {
    const { bytes } = await request.body.collect(context.limits.maxDocumentBytes)
    if (bytes.length === 0) throw new S3Error('MissingRequestBodyError')
    const { children } = await parseXml(bytes, 'BucketLoggingStatus')
    if (children.has('LoggingEnabled'))
      throw new S3Error('NotImplemented', {
        message: 'Requests are not logged into buckets: BucketLoggingStatus must be empty.',
      })
    if (children.size > 0) throw new S3Error('MalformedXML')
    return empty()
  },
})
