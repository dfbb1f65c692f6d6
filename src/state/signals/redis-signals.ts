import type { RedisClientType } from '@keyv/redis'
import type { Logger } from '../../common/log.js'
import { CHANNEL, SignalBoard } from './signals.js'

export interface OpenedSignals {
  readonly signals: SignalBoard
  close(): void
}

/**
 * Signals by publish and subscribe, on a connection of their own, which the client makes anew when it is lost
 * (https://redis.io/docs/latest/develop/pubsub/).
 * @param client for sending; a copy of it subscribes
 */
export function openRedisSignals(client: RedisClientType, log: Logger): OpenedSignals {
  const board = new SignalBoard((message) => {
    client.publish(CHANNEL, message).catch((err: unknown) => log.debug({ err }, 'could not send a signal'))
  })
  const subscriber = client.duplicate()
  let closed = false
  subscriber.on('error', (err: unknown) => {
    if (!closed) log.debug({ err }, 'the connection for signals failed')
  })
  // The client subscribes again before it is ready again. One that is destroyed while it connects would live on.
  subscriber.on('ready', () => (closed ? subscriber.destroy() : board.missed()))
  const subscribe = async () => {
    await subscriber.connect()
    await subscriber.subscribe(CHANNEL, (message) => board.receive(message))
    board.missed()
  }
  subscribe().catch((err) => {
    if (!closed) log.warn({ err }, 'cannot subscribe to signals of other proxies; their changes are found by polling')
  })
  return {
    signals: board,
    close() {
      closed = true
      if (subscriber.isReady) subscriber.destroy()
    },
  }
}
