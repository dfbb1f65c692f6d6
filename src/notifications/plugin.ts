import { notificationOperations } from '../operations/notifications/index.js'
import type { Plugin } from '../registry/plugin.js'
import { Sender, type SenderOptions } from './sender.js'
import { WebhookClient } from './webhook-client.js'
import type { Webhook } from './webhooks.js'

export interface NotificationOptions extends Omit<SenderOptions, 'client'> {
  /** By name. */
  readonly webhooks: ReadonlyMap<string, Webhook>
  /** Until a webhook has answered, ms; default 10 seconds. */
  readonly timeoutMs?: number
}

/** Tells webhooks what happens to objects, as S3 tells its destinations. */
export function notifications({ webhooks, timeoutMs, ...options }: NotificationOptions): Plugin {
  const client = new WebhookClient(webhooks, timeoutMs)
  const sender = new Sender({ ...options, client })
  return {
    name: 'notifications',
    operations: notificationOperations(client),
    hooks: {
      objectStored: (event) => sender.tell(event),
      objectDeleted: (event) => sender.tell(event),
      objectTagged: (event) => sender.tell(event),
      objectMoved: (event) => sender.tell(event),
    },
    start: () => sender.start(),
    async stop() {
      await sender.stop()
      await client.close()
    },
  }
}
