import { isPublic, parsePolicy } from '../../../access/decision/policy.js'
import { S3Error } from '../../../common/errors/s3-error.js'
import { document, element } from '../../../common/xml/xml.js'
import { defineOperation } from '../../../plugins/forms/operation.js'
import { xml } from '../../../response/reply.js'
import { readPolicy } from '../../policy/bucket-policy.js'

/** Counts what the gateway itself opens. */
export const getBucketPolicyStatus = defineOperation({
  name: 'GetBucketPolicyStatus',
  source: 'https://docs.aws.amazon.com/AmazonS3/latest/API/API_GetBucketPolicyStatus.html',
  access: 'owner',
  action: 's3:GetBucketPolicyStatus',
  on: { method: 'GET', resource: 'bucket', query: ['policyStatus'] },
  async run(request, context) {
    context.checks.requireWholeBucket(request.bucket, 'read')
    const policy = await readPolicy(context, request.bucket)
    if (policy === undefined) throw new S3Error('NoSuchBucketPolicy', { fields: { BucketName: request.bucket } })
    const parsed = parsePolicy(policy, { kind: 'bucket', bucket: request.bucket })
    return xml(document('PolicyStatus', element('IsPublic', isPublic(parsed))))
  },
})
