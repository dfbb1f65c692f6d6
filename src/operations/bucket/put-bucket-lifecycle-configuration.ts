import type { IncomingHttpHeaders } from 'node:http'
import type { Context } from '../../context.js'
import { S3Error } from '../../errors/s3-error.js'
import {
  type LifecycleRule,
  MINIMUM_TRANSITION_SIZES,
  type MinimumTransitionSize,
} from '../../lifecycle/configuration.js'
import { readConfiguration } from '../../lifecycle/read-configuration.js'
import { defineOperation } from '../../registry/operation.js'
import { empty } from '../../response/reply.js'
import { requireBucket } from '../common/buckets.js'
import { headerText } from '../common/headers.js'

export const MINIMUM_TRANSITION_SIZE = 'x-amz-transition-default-minimum-object-size'

export const putBucketLifecycleConfiguration = defineOperation({
  name: 'PutBucketLifecycleConfiguration',
  source: 'https://docs.aws.amazon.com/AmazonS3/latest/API/API_PutBucketLifecycleConfiguration.html',
  partly:
    'Expiration and AbortIncompleteMultipartUpload. Transitions only to storage classes that a plugin offers, else InvalidStorageClass; rules about versions are NotImplemented.',
  on: { method: 'PUT', resource: 'bucket', query: ['lifecycle'] },
  async run(request, context) {
    context.requireWholeBucket(request.bucket, 'write')
    const minimumTransitionSize = readMinimum(request.headers)
    const { bytes } = await request.body.collect(context.limits.maxDocumentBytes)
    if (bytes.length === 0) throw new S3Error('MissingRequestBodyError')
    const rules = await readConfiguration(bytes, (name) => context.storageClasses.has(name))
    requireActions(context, rules)
    await requireBucket(context, request.bucket)
    await requireOwn(context, request.bucket)
    await context.settings.set(request.bucket, 'lifecycle', { rules, minimumTransitionSize })
    return empty({ [MINIMUM_TRANSITION_SIZE]: minimumTransitionSize })
  },
})

/** What rules do costs what it costs when it is asked for. */
function requireActions(context: Context, rules: readonly LifecycleRule[]): void {
  for (const { storageClass } of rules.flatMap(({ transitions }) => transitions ?? [])) {
    const action = context.storageClasses.get(storageClass)?.action
    if (action !== undefined) context.requireAction(action)
  }
}

/** Rules are carried out by the server itself, with its own account: rules for a bucket out of its reach would never be. */
async function requireOwn(context: Context, bucket: string): Promise<void> {
  if (await context.own.bucketExists(bucket)) return
  throw new S3Error('NotImplemented', {
    message: "Lifecycle rules work only on buckets of the gateway account that is this server's own.",
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
