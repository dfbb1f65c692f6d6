import type { Plugin } from '../../plugins/forms/plugin.js'
import { Sender, type SenderOptions } from './delivery/sender.js'
import { notificationOperations } from './operations/index.js'

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
    },
    start: () => sender.start(),
    async stop() {
      await sender.stop()
      await client.close()
    },
  }
}
