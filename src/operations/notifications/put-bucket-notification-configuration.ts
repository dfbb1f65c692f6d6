import { S3Error } from '../../errors/s3-error.js'
import type { NotificationRule } from '../../notifications/configuration.js'
import { testMessage } from '../../notifications/messages.js'
import { invalidDestinations, readConfiguration } from '../../notifications/read-configuration.js'
import type { Refusal, Sendable } from '../../notifications/webhook-client.js'
import { arnOfWebhook } from '../../notifications/webhooks.js'
import { defineOperation, type Operation } from '../../registry/operation.js'
import type { S3Request } from '../../request/s3-request.js'
import { empty } from '../../response/reply.js'
import { requireBucket } from '../common/buckets.js'
import { headerText } from '../common/headers.js'
import { inOrder } from '../common/in-order.js'
import { ownerId } from '../common/owner.js'

/** Where notifications can be sent, and a way to try it. */
export interface Destinations {
  knows(webhook: string): boolean
  /** Undefined when it took the message, else why not. */
  send(webhook: string, message: Sendable): Promise<Refusal>
}

/** Test messages under way at once. */
const CONCURRENCY = 4

/** An empty configuration removes what there was: S3 has no operation of its own for that. */
export function putBucketNotificationConfiguration(destinations: Destinations): Operation<'bucket'> {
  return defineOperation({
    name: 'PutBucketNotificationConfiguration',
    source: 'https://docs.aws.amazon.com/AmazonS3/latest/API/API_PutBucketNotificationConfiguration.html',
    partly: 'To webhooks that the server was started with (notifications.md). EventBridge is NotImplemented.',
    on: { method: 'PUT', resource: 'bucket', query: ['notification'] },
    async run(request, context) {
      context.requireWholeBucket(request.bucket, 'write')
      const { bytes } = await request.body.collect(context.limits.maxDocumentBytes)
      if (bytes.length === 0) throw new S3Error('MissingRequestBodyError')
      const rules = await readConfiguration(bytes, (webhook) => destinations.knows(webhook))
      await requireBucket(context, request.bucket)
      if (headerText(request.headers, 'x-amz-skip-destination-validation')?.toLowerCase() !== 'true')
        await tryOut(request, rules, destinations)
      if (rules.length === 0) await context.settings.delete(request.bucket, 'notifications')
      else await context.settings.set(request.bucket, 'notifications', { owner: ownerId(context), rules })
      return empty()
    },
  })
}

/** Sends a test event to each destination, as S3 does. Throws InvalidArgument for those that do not take it. */
async function tryOut(
  request: S3Request<'bucket'>,
  rules: readonly NotificationRule[],
  destinations: Destinations,
): Promise<void> {
  const body = testMessage({ bucket: request.bucket, requestId: request.id, time: Date.now() })
  const webhooks = [...new Set(rules.map(({ webhook }) => webhook))]
  const refusals = await inOrder(webhooks, CONCURRENCY, async (webhook) => {
    const refusal = await destinations.send(webhook, { id: `test-${request.id}`, body })
    return refusal === undefined ? [] : [[arnOfWebhook(webhook), refusal] as const]
  })
  if (refusals.flat().length > 0) throw invalidDestinations(refusals.flat())
}
