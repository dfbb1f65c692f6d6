import { S3Error } from '../../errors/s3-error.js'
import { replacePolicy } from '../../policy/bucket-policy.js'
import { MAX_POLICY_BYTES } from '../../policy/parse-document.js'
import { toEntries } from '../../policy/to-entries.js'
import { defineOperation } from '../../registry/operation.js'
import { noContent } from '../../response/reply.js'
import { requireBucket } from '../common/buckets.js'

/** Stores what the gateway's rules can express, exactly, and refuses the rest by name. */
export const putBucketPolicy = defineOperation({
  name: 'PutBucketPolicy',
  source: 'https://docs.aws.amazon.com/AmazonS3/latest/API/API_PutBucketPolicy.html',
  partly:
    'What the gateway’s rules express, exactly (access.md); Deny, conditions and other principals are NotImplemented.',
  on: { method: 'PUT', resource: 'bucket', query: ['policy'] },
  async run(request, context) {
    context.requireWholeBucket(request.bucket, 'read')
    context.requireWholeBucket(request.bucket, 'write')
    const { bytes } = await request.body.collect(MAX_POLICY_BYTES)
    if (bytes.length === 0) throw new S3Error('MissingRequestBodyError')
    const document = decodeUtf8(bytes)
    const entries = toEntries(document, request.bucket)
    await requireBucket(context, request.bucket)
    await replacePolicy(context, request.bucket, entries, document)
    return noContent()
  },
})

function decodeUtf8(bytes: Buffer): string {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes)
  } catch (cause) {
    throw new S3Error('MalformedPolicy', { message: 'The policy is not valid UTF-8.', cause })
  }
}
