import { createClient, type RedisClientType } from '@keyv/redis'
import type { Logger } from '../log.js'
import type { Backend } from './backend.js'
import { reasonOf, StateError } from './errors.js'
import { LeaseLocks } from './lease-locks.js'
import { RedisLeases } from './redis-leases.js'
import { RedisStore } from './redis-store.js'
import { Table, withDeadline } from './table.js'

const CONNECT_MS = 5000
/** A server that took a command and says nothing is given up after this. */
const DEADLINE_MS = 10_000
/** One per object, part or finished upload: too many to list, and nobody does. */
const UNLISTED: ReadonlySet<string> = new Set(['object', 'part', 'completed'])

/**
 * Records in Redis, shared by all proxies that name it. How durable they are is Redis's setting (appendonly, appendfsync).
 * Throws StateError STATE_UNREACHABLE when it does not answer or refuses us.
 */
export async function openRedisBackend(url: string, log: Logger): Promise<Backend> {
  let open = false
  // createClient tells the default modules by their own types, which the adapter does not name.
  const client = createClient({
    url,
    // While there is no connection a call fails at once instead of waiting for ever.
    disableOfflineQueue: true,
    socket: {
      connectTimeout: CONNECT_MS,
      // Without this the first connect would be tried again for ever as well.
      reconnectStrategy: (attempt, cause) => (open ? Math.min(100 * 2 ** attempt, 2000) : cause),
    },
  }) as RedisClientType
  // Each kind of record listens, and there are more than ten.
  client.setMaxListeners(0)
  client.on('error', (error: unknown) => {
    if (open) log.error({ err: error }, 'connection to Redis failed')
  })
  try {
    await client.connect()
    await withDeadline(client.ping(), DEADLINE_MS)
    open = true
  } catch (error) {
    if (client.isOpen) client.destroy()
    const { host } = new URL(url)
    throw new StateError(
      'STATE_UNREACHABLE',
      `The state store redis://${host} cannot be used: ${reasonOf(error)}`,
      error,
    )
  }
  const leases = new RedisLeases((script, key, args) =>
    withDeadline(client.eval(script, { keys: [key], arguments: args }), DEADLINE_MS),
  )
  return {
    table: (namespace, options) =>
      new Table({
        store: new RedisStore(client, namespace, !UNLISTED.has(namespace)),
        namespace,
        log,
        deadline: DEADLINE_MS,
        ...options,
      }),
    locks: new LeaseLocks({ store: leases, log }),
    async close() {
      open = false
      if (client.isReady) await withDeadline(client.close(), DEADLINE_MS)
      else if (client.isOpen) client.destroy()
    },
  }
}
