import { parsePolicy } from '../../../access/decision/policy.js'
import { S3Error } from '../../../common/errors/s3-error.js'
import type { PolicyEntry } from '../../../gateway/gateway.js'
import { defineOperation } from '../../../plugins/forms/operation.js'
import { noContent } from '../../../response/reply.js'
import { replacePolicy } from '../../policy/bucket-policy.js'
import { MAX_POLICY_BYTES } from '../../policy/parse-document.js'
import { toEntries } from '../../policy/to-entries.js'

/**
 * Stores a policy. Where rules of the gateway say exactly the same they are set too, so that its other users see it.
 */
export const putBucketPolicy = defineOperation({
  name: 'PutBucketPolicy',
  source: 'https://docs.aws.amazon.com/AmazonS3/latest/API/API_PutBucketPolicy.html',
  partly: 'Actions and condition keys that nothing here has are MalformedPolicy (access.md).',
  access: 'owner',
  action: 's3:PutBucketPolicy',
  needs: { bucket: ['read', 'write'] },
  on: { method: 'PUT', resource: 'bucket', query: ['policy'] },
  async run(request, context) {
    const { bytes } = await request.body.collect(MAX_POLICY_BYTES)
    if (bytes.length === 0) throw new S3Error('MissingRequestBodyError')
    const document = decodeUtf8(bytes)
    const parsed = parsePolicy(document, {
      kind: 'bucket',
      bucket: request.bucket,
      pluginActions: context.plugins.actions,
    })
    await replacePolicy(context, request.bucket, { document, parsed, entries: rulesOf(document, request.bucket) })
    return noContent()
  },
})

/** Returns the rules of the gateway that say exactly the same as the document; none where there are no such rules. */
function rulesOf(document: string, bucket: string): readonly PolicyEntry[] {
  try {
    return toEntries(document, bucket)
  } catch (error) {
    if (error instanceof S3Error) return []
    throw error
  }
}

function decodeUtf8(bytes: Buffer): string {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes)
  } catch (cause) {
    throw new S3Error('MalformedPolicy', { message: 'The policy is not valid UTF-8.', cause })
  }
}
