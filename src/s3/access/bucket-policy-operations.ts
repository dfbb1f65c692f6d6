import { S3Error } from '../../../common/errors/s3-error.js'
import { hasLoneSurrogate } from '../../../common/json.js'
import { document, element } from '../../../common/xml.js'
import { isPublicAcl } from '../../access/acl.js'
import { isPublic, MAX_POLICY_BYTES, parsePolicy } from '../../access/policy.js'
import type { Context } from '../../api/context.js'
import { noContent, xml } from '../../http/reply.js'
import { bucketSetting } from '../bucket/bucket-setting.js'
import { aclOfBucket } from './acl-operations.js'
import { readPolicy, replacePolicy } from './bucket-policy.js'
import { toEntries } from './policy-entries.js'

/** Where rules of the gateway say exactly the same as a policy they are set too, so that its other users see it. */
export const bucketPolicy = bucketSetting({
  name: 'BucketPolicy',
  subresource: 'policy',
  action: 'BucketPolicy',
  aboutAccess: true,
  get: {
    async run({ bucket }, context) {
      const policy = await readPolicy(context, bucket)
      if (policy === undefined) return 'NoSuchBucketPolicy'
      return { status: 200, headers: { 'content-type': 'application/json' }, body: policy }
    },
  },
  put: {
    partly: 'Actions and condition keys that nothing here has are MalformedPolicy (access.md).',
    maxBytes: MAX_POLICY_BYTES,
    async run(bytes, { bucket }, context) {
      const text = decodeUtf8(bytes)
      if (hasLoneSurrogate(text))
        throw new S3Error('MalformedPolicy', { message: 'The policy has an escape that is no Unicode character.' })
      const parsed = parsePolicy(text, { kind: 'bucket', bucket, pluginActions: context.plugins.actions })
      await replacePolicy(context, bucket, { document: text, parsed, entries: toEntries(text, bucket) ?? [] })
      return noContent()
    },
  },
  remove: {
    action: 'DeleteBucketPolicy',
    run: (bucket, context) => replacePolicy(context, bucket, undefined),
  },
})

/**
 * Counts what the gateway itself and the ACL of the bucket open. Like MinIO and Ceph, and unlike AWS, it answers also
 * for a bucket without a policy.
 */
export const bucketPolicyStatus = bucketSetting({
  name: 'BucketPolicyStatus',
  subresource: 'policyStatus',
  action: 'BucketPolicyStatus',
  get: {
    run: async ({ bucket }, context) =>
      xml(document('PolicyStatus', element('IsPublic', await isOpenToEverybody(context, bucket)))),
  },
})

/** True if the policy, the ACL or rules of the gateway open the bucket. Throws S3Error. */
export async function isOpenToEverybody(context: Context, bucket: string): Promise<boolean> {
  const policy = await readPolicy(context, bucket)
  const byPolicy = policy !== undefined && isPublic(parsePolicy(policy, { kind: 'bucket', bucket }))
  return byPolicy || isPublicByAcl(context, bucket)
}

async function isPublicByAcl(context: Context, bucket: string): Promise<boolean> {
  if (!isPublicAcl(await aclOfBucket(context, bucket))) return false
  return (await context.settings.confirmed(bucket, 'publicAccessBlock'))?.IgnorePublicAcls !== true
}

function decodeUtf8(bytes: Buffer): string {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes)
  } catch (cause) {
    throw new S3Error('MalformedPolicy', { message: 'The policy is not valid UTF-8.', cause })
  }
}
