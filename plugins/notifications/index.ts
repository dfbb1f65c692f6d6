import {
  type AnyOperation,
  defineOperation,
  definePlugin,
  type ObjectEvent,
  type Operation,
  type PluginGauge,
  reply,
  type S3Request,
  xml,
  z,
} from 'dealgate/plugin'
import pMap from 'p-map'
import {
  configurationDocument,
  invalidDestinations,
  type NotificationRule,
  readConfiguration,
} from './configuration.js'
import { testMessage } from './outbox.js'
import { Sender } from './sender.js'
import { type Refusal, type Sendable, WebhookClient } from './webhook-client.js'
import { arnOfWebhook, joinWebhooks, NAME, problemOfUrl } from './webhooks.js'

export type { Webhook } from './webhooks.js'

const DAY_MS = 24 * 3600 * 1000

const options = z.object({
  webhooks: z
    .array(
      z.object({
        name: z.string().regex(NAME, 'must have 1 to 64 letters, digits, "-" and "_"'),
        url: z
          .string()
          .refine((url) => problemOfUrl(url) === undefined, { error: ({ input }) => problemOfUrl(String(input)) })
          .describe('http or https. User and password in it are sent as basic authentication.'),
        secret: z.string().min(8).optional().describe('Key of the signature in `x-dealgate-signature`.'),
      }),
    )
    .default([])
    .describe('Destinations, each with `name`, `url` and an optional `secret`; `--webhook` of the command line.'),
  giveUpAfterMs: z
    .int()
    .min(0)
    .default(DAY_MS)
    .describe(
      'Age at which an undelivered notification is dropped, ms; `--notification-max-age-hours` of the command line.',
    ),
  firstRetryMs: z
    .int()
    .min(1)
    .default(1000)
    .describe('Pause before the first retry, ms, doubled for each further one.'),
})

/** Sends event notifications to webhooks, as S3 does to its destinations. */
export default definePlugin({
  name: 'notifications',
  standard: true,
  summary: 'Notifications of buckets: events of their objects, sent to webhooks.',
  options,
  create({ webhooks, giveUpAfterMs, firstRetryMs }, host) {
    const client = new WebhookClient(joinWebhooks(webhooks))
    let opened: Sender | undefined
    const notify = async (event: ObjectEvent) => {
      if (!opened) throw new Error('the plugin has not started')
      await opened.notify(event)
    }
    return {
      operations: notificationOperations(client),
      hooks: {
        objectStored: notify,
        objectDeleted: notify,
        objectTagged: notify,
        objectMoved: notify,
        inventoryFailed: notify,
      },
      gauges: backlogGauges(() => opened?.backlog() ?? []),
      reconfigure(next) {
        const replaced = joinWebhooks(next.webhooks)
        return () => client.replace(replaced)
      },
      async start() {
        const { state, settings, log, own } = host
        const { region } = own.server
        const lease = () => host.lease()
        opened = new Sender({ state, settings, lease, client, region, log, giveUpAfterMs, firstRetryMs })
        await opened.start()
      },
      async stop() {
        await opened?.stop()
        await client.close()
      },
    }
  },
})

function backlogGauges(backlog: Sender['backlog']): readonly PluginGauge[] {
  return [
    {
      name: 'waiting',
      help: 'Notifications that their webhook has not accepted yet.',
      read: async () => backlog().map(({ webhook, waiting: value }) => ({ labels: { webhook }, value })),
    },
    {
      name: 'oldest_age_seconds',
      help: 'Age of the oldest notification that its webhook has not accepted yet.',
      read: async () => backlog().map(({ webhook, ageMs }) => ({ labels: { webhook }, value: ageMs / 1000 })),
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
    return reply.xml(configurationDocument(configuration?.rules ?? []))
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
    // Each of many webhooks may take all of its time.
    deadlineMs: 600_000,
    action: 's3:PutBucketNotification',
    needs: { bucket: ['write'] },
    on: { method: 'PUT', resource: 'bucket', query: ['notification'] },
    async run(request, context) {
      const root = await xml.read(request, context, 'NotificationConfiguration')
      const rules = readConfiguration(root, (webhook) => destinations.knows(webhook))
      if (String(request.headers['x-amz-skip-destination-validation']).toLowerCase() !== 'true')
        await testDestinations(request, rules, destinations)
      if (rules.length === 0) await context.settings.delete(request.bucket, 'notifications')
      else await context.settings.set(request.bucket, 'notifications', { owner: context.canonicalId, rules })
      return reply.empty()
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
