import type { IncomingHttpHeaders } from 'node:http'
import type { Context } from '../../api/context.js'
import { OWN_ID } from '../../auth/identities/credentials.js'
import { S3Error } from '../../common/errors/s3-error.js'
import { requireDocument } from '../../http/read-request.js'
import { empty, noContent, xml } from '../../http/reply.js'
import { defineOperation } from '../../plugins/define-plugin.js'
import { headerText } from '../object/attributes.js'
import {
  configurationDocument,
  type LifecycleConfiguration,
  type LifecycleRule,
  MINIMUM_TRANSITION_SIZES,
  type MinimumTransitionSize,
  readConfiguration,
} from './configuration.js'

export const getBucketLifecycleConfiguration = defineOperation({
  name: 'GetBucketLifecycleConfiguration',
  source: 'https://docs.aws.amazon.com/AmazonS3/latest/API/API_GetBucketLifecycleConfiguration.html',
  access: 'owner',
  action: 's3:GetLifecycleConfiguration',
  on: { method: 'GET', resource: 'bucket', query: ['lifecycle'] },
  async run(request, context) {
    context.checks.requireWholeBucket(request.bucket, 'read')
    const configuration = await context.settings.confirmed(request.bucket, 'lifecycle')
    if (!configuration) throw new S3Error('NoSuchLifecycleConfiguration', { fields: { BucketName: request.bucket } })
    return xml(configurationDocument(configuration), {
      [MINIMUM_TRANSITION_SIZE]: configuration.minimumTransitionSize,
    })
  },
})

const MINIMUM_TRANSITION_SIZE = 'x-amz-transition-default-minimum-object-size'

export const putBucketLifecycleConfiguration = defineOperation({
  name: 'PutBucketLifecycleConfiguration',
  source: 'https://docs.aws.amazon.com/AmazonS3/latest/API/API_PutBucketLifecycleConfiguration.html',
  partly:
    'Expiration and AbortIncompleteMultipartUpload. Transitions only to storage classes that a plugin offers, else InvalidStorageClass; rules about versions are NotImplemented.',
  access: 'owner',
  action: 's3:PutLifecycleConfiguration',
  needs: { bucket: ['write'] },
  on: { method: 'PUT', resource: 'bucket', query: ['lifecycle'] },
  async run(request, context) {
    const minimumTransitionSize = readMinimum(request.headers)
    const bytes = await requireDocument(request.body, context.limits.maxDocumentBytes)
    const rules = await readConfiguration(bytes, (name) => context.plugins.storageClasses.has(name))
    await requireActions(context, request.bucket, rules)
    const owned = await ownerOf(context, request.bucket, rules)
    await context.settings.set(request.bucket, 'lifecycle', { rules, minimumTransitionSize, ...owned })
    return empty({ [MINIMUM_TRANSITION_SIZE]: minimumTransitionSize })
  },
})

/** Requires the actions of the storage classes in the rules, because transitions cost as much as direct writes. */
async function requireActions(context: Context, bucket: string, rules: readonly LifecycleRule[]): Promise<void> {
  for (const { storageClass } of rules.flatMap(({ transitions }) => transitions ?? [])) {
    const action = context.plugins.storageClasses.get(storageClass)?.action
    if (action !== undefined) await context.checks.requireAction(action, { bucket })
  }
}

/**
 * Returns the account whose rights the rules have; nothing for the server's own. Throws NotImplemented for transitions
 * in buckets of other accounts: classes of plugins make deals with the server's own account, and it would pay.
 */
async function ownerOf(
  context: Context,
  bucket: string,
  rules: readonly LifecycleRule[],
): Promise<Pick<LifecycleConfiguration, 'owned'>> {
  const owned = await context.authorizer.ownerOf(bucket)
  if (owned.owner === OWN_ID) return {}
  if (rules.every(({ transitions }) => !transitions?.length)) return { owned }
  throw new S3Error('NotImplemented', {
    message: "Transitions work only on buckets of this server's own gateway account. Expiration works on all buckets.",
    fields: { BucketName: bucket },
  })
}

function readMinimum(headers: IncomingHttpHeaders): MinimumTransitionSize {
  const value = headerText(headers, MINIMUM_TRANSITION_SIZE) ?? MINIMUM_TRANSITION_SIZES[0]
  const known = MINIMUM_TRANSITION_SIZES.find((name) => name === value)
  if (known) return known
  throw new S3Error('InvalidArgument', {
    message: `${MINIMUM_TRANSITION_SIZE} must be one of ${MINIMUM_TRANSITION_SIZES.join(', ')}.`,
    fields: { ArgumentName: MINIMUM_TRANSITION_SIZE, ArgumentValue: value },
  })
}

export const deleteBucketLifecycle = defineOperation({
  name: 'DeleteBucketLifecycle',
  source: 'https://docs.aws.amazon.com/AmazonS3/latest/API/API_DeleteBucketLifecycle.html',
  access: 'owner',
  action: 's3:PutLifecycleConfiguration',
  on: { method: 'DELETE', resource: 'bucket', query: ['lifecycle'] },
  async run(request, context) {
    context.checks.requireWholeBucket(request.bucket, 'write')
    await context.settings.delete(request.bucket, 'lifecycle')
    return noContent()
  },
})
