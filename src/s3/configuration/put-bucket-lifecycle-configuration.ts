import type { IncomingHttpHeaders } from 'node:http'
import { S3Error } from '../../common/errors/s3-error.js'
import { defineOperation } from '../../plugins/forms/operation.js'
import { empty } from '../../response/reply.js'
import type { Context } from '../../server/context.js'
import { type LifecycleRule, MINIMUM_TRANSITION_SIZES, type MinimumTransitionSize } from '../lifecycle/configuration.js'
import { readConfiguration } from '../lifecycle/read-configuration.js'
import { headerText } from '../vocabulary/headers.js'

export const MINIMUM_TRANSITION_SIZE = 'x-amz-transition-default-minimum-object-size'

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
    const { bytes } = await request.body.collect(context.limits.maxDocumentBytes)
    if (bytes.length === 0) throw new S3Error('MissingRequestBodyError')
    const rules = await readConfiguration(bytes, (name) => context.plugins.storageClasses.has(name))
    await requireActions(context, request.bucket, rules)
    await requireOwn(context, request.bucket)
    await context.settings.set(request.bucket, 'lifecycle', { rules, minimumTransitionSize })
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
 * Throws NotImplemented for a bucket of another account: the server applies rules with its own account, which may
 * delete and pay only in its own buckets.
 */
async function requireOwn(context: Context, bucket: string): Promise<void> {
  const own = await context.own.listBuckets()
  if (own.some(({ name }) => name === bucket)) return
  throw new S3Error('NotImplemented', {
    message: "Lifecycle rules work only on buckets of this server's own gateway account.",
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
