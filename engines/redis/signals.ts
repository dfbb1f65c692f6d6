import type { RedisClientType } from '@keyv/redis'
import { CHANNEL } from '../../src/state/signals.js'
import type { SignalEngine } from '../lasting-signals.js'

/**
 * Signals by publish and subscribe (https://redis.io/docs/latest/develop/pubsub/).
 * @param client for sending; copies of it subscribe. The signal of its sockets ends a connection attempt of a copy
 */
export function redisSignals(client: RedisClientType): SignalEngine {
  return {
    publish: (message) => client.publish(CHANNEL, message),
    async listen(heard, lost) {
      const socket = { ...client.options?.socket, reconnectStrategy: false } as const
      const subscriber = client.duplicate({ socket } as Parameters<RedisClientType['duplicate']>[0])
      const close = () => {
        if (subscriber.isOpen) subscriber.destroy()
      }
      subscriber.on('error', lost)
      subscriber.on('end', lost)
      try {
        await subscriber.connect()
        await subscriber.subscribe(CHANNEL, heard)
      } catch (error) {
        close()
        throw error
      }
      return { close }
    },
  }
}
