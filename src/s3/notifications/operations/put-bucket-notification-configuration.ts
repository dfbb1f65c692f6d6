import pMap from 'p-map'
import { S3Error } from '../../../common/errors/s3-error.js'
import { defineOperation, type Operation } from '../../../plugins/forms/operation.js'
import type { S3Request } from '../../../request/s3-request.js'
import { empty } from '../../../response/reply.js'
import { headerText } from '../../vocabulary/headers.js'
import { ownerId } from '../../vocabulary/owner.js'
import type { NotificationRule } from '../configuration.js'
import { testMessage } from '../delivery/messages.js'
import type { Refusal, Sendable } from '../delivery/webhook-client.js'
import { arnOfWebhook } from '../delivery/webhooks.js'
import { invalidDestinations, readConfiguration } from '../read-configuration.js'

/** The destinations of notifications. */
export interface Destinations {
  knows(webhook: string): boolean
  /** Resolves undefined if the webhook accepted the message, else with the reason. */
  send(webhook: string, message: Sendable): Promise<Refusal>
}

/** Number of concurrent test messages. */
const CONCURRENCY = 4

/** An empty configuration removes the present one, because S3 has no operation for that. */
export function putBucketNotificationConfiguration(destinations: Destinations): Operation<'bucket'> {
  return defineOperation({
    name: 'PutBucketNotificationConfiguration',
    source: 'https://docs.aws.amazon.com/AmazonS3/latest/API/API_PutBucketNotificationConfiguration.html',
    partly: 'To webhooks that the server was started with (notifications.md). EventBridge is NotImplemented.',
    access: 'owner',
    action: 's3:PutBucketNotification',
    needs: { bucket: ['write'] },
    on: { method: 'PUT', resource: 'bucket', query: ['notification'] },
    async run(request, context) {
      const { bytes } = await request.body.collect(context.limits.maxDocumentBytes)
      if (bytes.length === 0) throw new S3Error('MissingRequestBodyError')
      const rules = await readConfiguration(bytes, (webhook) => destinations.knows(webhook))
      if (headerText(request.headers, 'x-amz-skip-destination-validation')?.toLowerCase() !== 'true')
        await testDestinations(request, rules, destinations)
      if (rules.length === 0) await context.settings.delete(request.bucket, 'notifications')
      else await context.settings.set(request.bucket, 'notifications', { owner: ownerId(context), rules })
      return empty()
    },
  })
}

/**
 * Sends a test event to each destination, as S3 does. Throws InvalidArgument for destinations that do not accept it.
 */
async function testDestinations(
  request: S3Request<'bucket'>,
  rules: readonly NotificationRule[],
  destinations: Destinations,
): Promise<void> {
  const body = testMessage({ bucket: request.bucket, requestId: request.id, time: Date.now() })
  const webhooks = [...new Set(rules.map(({ webhook }) => webhook))]
  const refusals = await pMap(
    webhooks,
    async (webhook) => {
      const refusal = await destinations.send(webhook, { id: `test-${request.id}`, body })
      return refusal === undefined ? [] : [[arnOfWebhook(webhook), refusal] as const]
    },
    { concurrency: CONCURRENCY },
  )
  if (refusals.flat().length > 0) throw invalidDestinations(refusals.flat())
}
