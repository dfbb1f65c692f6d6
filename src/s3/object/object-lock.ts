import type { Operation } from '../../api/operation.js'
import { S3Error } from '../../common/errors/s3-error.js'
import { refuseVersion } from '../../http/read-request.js'

export const getObjectLegalHold = lockOfObject('GetObjectLegalHold', 'legal-hold')
export const getObjectRetention = lockOfObject('GetObjectRetention', 'retention')

/**
 * Answers as S3 does for a bucket without object lock:
 * https://docs.aws.amazon.com/AmazonS3/latest/userguide/object-lock.html
 */
function lockOfObject(name: string, subresource: string): Operation<'object'> {
  return {
    name,
    source: `https://docs.aws.amazon.com/AmazonS3/latest/API/API_${name}.html`,
    partly: 'No bucket has object lock: InvalidRequest.',
    access: 'signed',
    action: `s3:${name}`,
    on: { method: 'GET', resource: 'object', query: [subresource], params: ['versionId'] },
    async run(request, context) {
      refuseVersion(request.query)
      await context.store.head(request.bucket, request.key)
      throw new S3Error('InvalidRequest', { message: 'Bucket is missing Object Lock Configuration' })
    },
  }
}
