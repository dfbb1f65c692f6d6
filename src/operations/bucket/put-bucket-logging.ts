import { S3Error } from '../../errors/s3-error.js'
import { defineOperation } from '../../registry/operation.js'
import { empty } from '../../response/reply.js'
import { parseXml } from '../../xml.js'
import { requireBucket } from '../common/buckets.js'

/** An empty status switches logging off, which it is. */
export const putBucketLogging = defineOperation({
  name: 'PutBucketLogging',
  source: 'https://docs.aws.amazon.com/AmazonS3/latest/API/API_PutBucketLogging.html',
  partly: 'The empty status, which is always so; LoggingEnabled is NotImplemented.',
  on: { method: 'PUT', resource: 'bucket', query: ['logging'] },
  async run(request, context) {
    context.requireWholeBucket(request.bucket, 'write')
    const { bytes } = await request.body.collect(context.limits.maxDocumentBytes)
    if (bytes.length === 0) throw new S3Error('MissingRequestBodyError')
    const { children } = await parseXml(bytes, 'BucketLoggingStatus')
    if (children.has('LoggingEnabled'))
      throw new S3Error('NotImplemented', {
        message: 'Requests are not logged into buckets: BucketLoggingStatus must be empty.',
      })
    if (children.size > 0) throw new S3Error('MalformedXML')
    await requireBucket(context, request.bucket)
    return empty()
  },
})
