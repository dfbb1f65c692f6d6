import pMap from 'p-map'
import type { AnyOperation, Operation } from '../../api/operation.js'
import type { Plugin, PluginGauge } from '../../api/plugin.js'
import type { S3Request } from '../../api/request.js'
import { requireDocument } from '../../http/read-request.js'
import { empty, xml } from '../../http/reply.js'
import { defineOperation } from '../../plugins/define-plugin.js'
import { ownerId } from '../bucket/owner.js'
import { headerText } from '../object/attributes.js'
import {
  configurationDocument,
  invalidDestinations,
  type NotificationRule,
  readConfiguration,
} from './configuration.js'
import { testMessage } from './outbox.js'
import { Sender, type SenderOptions } from './sender.js'
import type { Refusal, Sendable } from './webhook-client.js'
import { arnOfWebhook } from './webhooks.js'

/** Sends event notifications to webhooks, as S3 does to its destinations. It closes the client when it stops. */
export function notifications(options: SenderOptions): Plugin {
  const { client } = options
  const sender = new Sender(options)
  return {
    name: 'notifications',
    operations: notificationOperations(client),
    hooks: {
      objectStored: (event) => sender.notify(event),
      objectDeleted: (event) => sender.notify(event),
      objectTagged: (event) => sender.notify(event),
      objectMoved: (event) => sender.notify(event),
      inventoryFailed: (event) => sender.notify(event),
    },
    gauges: backlogGauges(sender),
    start: () => sender.start(),
    async stop() {
      await sender.stop()
      await client.close()
    },
  }
}

function backlogGauges(sender: Pick<Sender, 'backlog'>): readonly PluginGauge[] {
  return [
    {
      name: 'waiting',
      help: 'Notifications that their webhook has not accepted yet.',
      read: async () => sender.backlog().map(({ webhook, waiting: value }) => ({ labels: { webhook }, value })),
    },
    {
      name: 'oldest_age_seconds',
      help: 'Age of the oldest notification that its webhook has not accepted yet.',
      read: async () => sender.backlog().map(({ webhook, ageMs }) => ({ labels: { webhook }, value: ageMs / 1000 })),
    },
  ]
}

/** The operations of the plugin `notifications`. */
export function notificationOperations(destinations: Destinations): readonly AnyOperation[] {
  return [putBucketNotificationConfiguration(destinations), getBucketNotificationConfiguration]
}

const getBucketNotificationConfiguration = defineOperation({
  name: 'GetBucketNotificationConfiguration',
  source: 'https://docs.aws.amazon.com/AmazonS3/latest/API/API_GetBucketNotificationConfiguration.html',
  access: 'owner',
  action: 's3:GetBucketNotification',
  needs: { bucket: ['read'] },
  on: { method: 'GET', resource: 'bucket', query: ['notification'] },
  async run(request, context) {
    const configuration = await context.settings.confirmed(request.bucket, 'notifications')
    return xml(configurationDocument(configuration?.rules ?? []))
  },
})

/** The destinations of notifications. */
interface Destinations {
  knows(webhook: string): boolean
  /** Resolves undefined if the webhook accepted the message, else with the reason. */
  send(webhook: string, message: Sendable): Promise<Refusal>
}

/** Number of concurrent test messages. */
const MAX_CONCURRENCY = 4

/** An empty configuration removes the present one, because S3 has no operation for that. */
function putBucketNotificationConfiguration(destinations: Destinations): Operation<'bucket'> {
  return defineOperation({
    name: 'PutBucketNotificationConfiguration',
    source: 'https://docs.aws.amazon.com/AmazonS3/latest/API/API_PutBucketNotificationConfiguration.html',
    partly: 'To webhooks that the server was started with (notifications.md). EventBridge is NotImplemented.',
    access: 'owner',
    action: 's3:PutBucketNotification',
    needs: { bucket: ['write'] },
    on: { method: 'PUT', resource: 'bucket', query: ['notification'] },
    async run(request, context) {
      const bytes = await requireDocument(request.body, context.limits.maxDocumentBytes)
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
    { concurrency: MAX_CONCURRENCY },
  )
  if (refusals.flat().length > 0) throw invalidDestinations(refusals.flat())
}
