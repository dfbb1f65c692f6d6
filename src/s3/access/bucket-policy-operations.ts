import { isPublic, parsePolicy } from '../../access/policy.js'
import type { PolicyEntry } from '../../api/gateway.js'
import { S3Error } from '../../common/errors/s3-error.js'
import { document, element } from '../../common/xml.js'
import { requireDocument } from '../../http/read-request.js'
import { noContent, xml } from '../../http/reply.js'
import { defineOperation } from '../../plugins/define-plugin.js'
import { readPolicy, replacePolicy } from './bucket-policy.js'
import { MAX_POLICY_BYTES } from './policy-document.js'
import { toEntries } from './policy-entries.js'

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
    const bytes = await requireDocument(request.body, MAX_POLICY_BYTES)
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

export const deleteBucketPolicy = defineOperation({
  name: 'DeleteBucketPolicy',
  source: 'https://docs.aws.amazon.com/AmazonS3/latest/API/API_DeleteBucketPolicy.html',
  access: 'owner',
  action: 's3:DeleteBucketPolicy',
  on: { method: 'DELETE', resource: 'bucket', query: ['policy'] },
  async run(request, context) {
    context.checks.requireWholeBucket(request.bucket, 'read')
    context.checks.requireWholeBucket(request.bucket, 'write')
    await replacePolicy(context, request.bucket, undefined)
    return noContent()
  },
})

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
