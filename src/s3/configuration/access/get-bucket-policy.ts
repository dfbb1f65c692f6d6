import { S3Error } from '../../../common/errors/s3-error.js'
import { defineOperation } from '../../../plugins/forms/operation.js'
import { readPolicy } from '../../policy/bucket-policy.js'

export const getBucketPolicy = defineOperation({
  name: 'GetBucketPolicy',
  source: 'https://docs.aws.amazon.com/AmazonS3/latest/API/API_GetBucketPolicy.html',
  access: 'owner',
  action: 's3:GetBucketPolicy',
  on: { method: 'GET', resource: 'bucket', query: ['policy'] },
  async run(request, context) {
    context.checks.requireWholeBucket(request.bucket, 'read')
    const document = await readPolicy(context, request.bucket)
    if (document === undefined) throw new S3Error('NoSuchBucketPolicy', { fields: { BucketName: request.bucket } })
    return { status: 200, headers: { 'content-type': 'application/json' }, body: document }
  },
})
