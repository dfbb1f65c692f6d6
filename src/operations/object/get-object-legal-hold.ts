import { S3Error } from '../../errors/s3-error.js'
import { defineOperation } from '../../registry/operation.js'
import { refuseVersion } from '../common/version.js'

/** As S3 answers in a bucket without object lock: https://docs.aws.amazon.com/AmazonS3/latest/userguide/object-lock.html */
export const getObjectLegalHold = defineOperation({
  name: 'GetObjectLegalHold',
  source: 'https://docs.aws.amazon.com/AmazonS3/latest/API/API_GetObjectLegalHold.html',
  partly: 'No bucket has object lock: InvalidRequest.',
  on: { method: 'GET', resource: 'object', query: ['legal-hold'], params: ['versionId'] },
  async run(request, context) {
    refuseVersion(request.query)
    await context.store.head(request.bucket, request.key)
    throw new S3Error('InvalidRequest', { message: 'Bucket is missing Object Lock Configuration' })
  },
})
