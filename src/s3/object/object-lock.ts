import { S3Error } from '../../common/errors/s3-error.js'
import { refuseVersion } from '../../http/read-request.js'
import { defineOperation } from '../../plugins/define-plugin.js'

/**
 * Answers as S3 does for a bucket without object lock:
 * https://docs.aws.amazon.com/AmazonS3/latest/userguide/object-lock.html
 */
export const getObjectLegalHold = defineOperation({
  name: 'GetObjectLegalHold',
  source: 'https://docs.aws.amazon.com/AmazonS3/latest/API/API_GetObjectLegalHold.html',
  partly: 'No bucket has object lock: InvalidRequest.',
  access: 'signed',
  action: 's3:GetObjectLegalHold',
  on: { method: 'GET', resource: 'object', query: ['legal-hold'], params: ['versionId'] },
  async run(request, context) {
    refuseVersion(request.query)
    await context.store.head(request.bucket, request.key)
    throw new S3Error('InvalidRequest', { message: 'Bucket is missing Object Lock Configuration' })
  },
})

/**
 * Answers as S3 does for a bucket without object lock:
 * https://docs.aws.amazon.com/AmazonS3/latest/userguide/object-lock.html
 */
export const getObjectRetention = defineOperation({
  name: 'GetObjectRetention',
  source: 'https://docs.aws.amazon.com/AmazonS3/latest/API/API_GetObjectRetention.html',
  partly: 'No bucket has object lock: InvalidRequest.',
  access: 'signed',
  action: 's3:GetObjectRetention',
  on: { method: 'GET', resource: 'object', query: ['retention'], params: ['versionId'] },
  async run(request, context) {
    refuseVersion(request.query)
    await context.store.head(request.bucket, request.key)
    throw new S3Error('InvalidRequest', { message: 'Bucket is missing Object Lock Configuration' })
  },
})
