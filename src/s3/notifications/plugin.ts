import type { Plugin } from '../../plugins/forms/plugin.js'
import { Sender, type SenderOptions } from './delivery/sender.js'
import { WebhookClient } from './delivery/webhook-client.js'
import type { Webhook } from './delivery/webhooks.js'
import { notificationOperations } from './operations/index.js'

export interface NotificationOptions extends Omit<SenderOptions, 'client'> {
  /** Webhooks by name. */
  readonly webhooks: ReadonlyMap<string, Webhook>
  /** Timeout for the answer of a webhook, ms; default 10 seconds. */
  readonly timeoutMs?: number
}

/** Sends event notifications to webhooks, as S3 does to its destinations. */
export function notifications({ webhooks, timeoutMs, ...options }: NotificationOptions): Plugin {
  const client = new WebhookClient(webhooks, timeoutMs)
  const sender = new Sender({ ...options, client })
  return {
    name: 'notifications',
    operations: notificationOperations(client),
    hooks: {
      objectStored: (event) => sender.notify(event),
      objectDeleted: (event) => sender.notify(event),
      objectTagged: (event) => sender.notify(event),
      objectMoved: (event) => sender.notify(event),
    },
    start: () => sender.start(),
    async stop() {
      await sender.stop()
      await client.close()
    },
  }
}
