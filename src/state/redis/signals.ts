import type { RedisClientType } from '@keyv/redis'
import type { Logger } from '../../../common/log.js'
import { CHANNEL, SignalBoard } from '../signals.js'

export interface OpenedSignals {
  readonly signals: SignalBoard
  close(): void
}

/** Pause before a subscription that failed is tried again, ms. Doubles with each failure. */
const FIRST_PAUSE_MS = 100
const MAX_PAUSE_MS = 2000

/**
 * Signals by publish and subscribe, on a connection of their own, which the client makes anew when it is lost
 * (https://redis.io/docs/latest/develop/pubsub/).
 * @param client for sending; a copy of it subscribes. The signal of its sockets ends a connection attempt of the copy
 */
export function openRedisSignals(client: RedisClientType, log: Logger): OpenedSignals {
  const board = new SignalBoard((message) => {
    client.publish(CHANNEL, message).catch((err: unknown) => log.debug({ err }, 'could not send a signal'))
  })
  const subscriber = client.duplicate()
  const receive = (message: string) => board.receive(message)
  let closed = false
  let subscribed = false
  let next: NodeJS.Timeout | undefined
  let pause = FIRST_PAUSE_MS

  /** Until it succeeds. From then on the client subscribes again before it is ready again. */
  async function subscribe(): Promise<void> {
    next = undefined
    try {
      await subscriber.subscribe(CHANNEL, receive)
      subscribed = true
      board.missed()
    } catch (err) {
      if (closed) return
      const text = 'cannot subscribe to signals of other proxies yet; their changes are found by polling'
      // Once: a user of Redis may never get the right to the channel.
      if (pause === FIRST_PAUSE_MS) log.warn({ err }, text)
      else log.debug({ err }, text)
      next = setTimeout(subscribe, pause).unref()
      pause = Math.min(pause * 2, MAX_PAUSE_MS)
    }
  }

  subscriber.on('error', (err: unknown) => {
    if (!closed) log.debug({ err }, 'the connection for signals failed')
  })
  subscriber.on('ready', () => {
    if (subscribed && !closed) board.missed()
  })
  subscriber.connect().then(
    () => subscribe(),
    (err) => {
      if (!closed) log.warn({ err }, 'cannot connect for signals of other proxies; their changes are found by polling')
    },
  )
  return {
    signals: board,
    close() {
      closed = true
      clearTimeout(next)
      if (subscriber.isOpen) subscriber.destroy()
    },
  }
}
