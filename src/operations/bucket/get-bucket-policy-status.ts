import { S3Error } from '../../errors/s3-error.js'
import { readPolicy } from '../../policy/bucket-policy.js'
import { defineOperation } from '../../registry/operation.js'
import { xml } from '../../response/reply.js'
import { document, element } from '../../xml.js'

/** Every policy that a gateway can hold is for everybody. */
export const getBucketPolicyStatus = defineOperation({
  name: 'GetBucketPolicyStatus',
  source: 'https://docs.aws.amazon.com/AmazonS3/latest/API/API_GetBucketPolicyStatus.html',
  on: { method: 'GET', resource: 'bucket', query: ['policyStatus'] },
  async run(request, context) {
    context.requireWholeBucket(request.bucket, 'read')
    if ((await readPolicy(context, request.bucket)) === undefined)
      throw new S3Error('NoSuchBucketPolicy', { fields: { BucketName: request.bucket } })
    return xml(document('PolicyStatus', element('IsPublic', true)))
  },
})
