import { createClient, type RedisClientType } from '@keyv/redis'
import { withinDeadline } from '../../common/deadline.js'
import type { Logger } from '../../common/log.js'
import { reasonOf, StateError } from '../errors.js'
import { Guard } from '../integrity/guard.js'
import { LeaseLocks } from '../locks/lease-locks.js'
import { RedisLeases } from '../locks/redis-leases.js'
import { Table } from '../records/table.js'
import { openRedisSignals } from '../signals/redis-signals.js'
import type { Backend } from './backend.js'
import { redisAdvice } from './redis-advice.js'
import { RedisStore } from './redis-store.js'

const CONNECT_MS = 5000
/** Kinds with one record per object, part or finished upload. They are too many to list and are never listed. */
const UNLISTED: ReadonlySet<string> = new Set(['object', 'part', 'completed', 'epoch'])

/** Records of one kind and the list of their keys change in one transaction, and a cluster keeps them apart. */
async function refuseCluster(client: RedisClientType): Promise<void> {
  const about = await withinDeadline(client.info('cluster'), CONNECT_MS).catch(() => '')
  if (about.includes('cluster_enabled:1'))
    throw new Error('Redis Cluster is not supported. Use a single Redis or PostgreSQL')
}

/**
 * Records in Redis, shared by all proxies that use the server. Their durability depends on the settings of Redis
 * (appendonly, appendfsync). Throws StateError STATE_UNREACHABLE when it does not answer or refuses the connection.
 * @param timeoutMs longest wait for the answer to a call
 */
export async function openRedisBackend(
  url: string,
  log: Logger,
  timeoutMs: number,
  leaseMs?: number,
): Promise<Backend> {
  let open = false
  // The client has no way to end a connection attempt.
  const ended = new AbortController()
  // createClient types the default modules in a way that the adapter's type does not name.
  const client = createClient({
    url,
    // Without a connection, calls fail at once instead of waiting indefinitely.
    disableOfflineQueue: true,
    // A dead connection stays silent: it is closed after the timeout and replaced. Pings keep an idle connection alive.
    pingInterval: timeoutMs / 2,
    socket: {
      socketTimeout: timeoutMs * 2,
      connectTimeout: CONNECT_MS,
      signal: ended.signal,
      // Without this, the first connect would be retried indefinitely.
      reconnectStrategy: (attempt, cause) => (open ? Math.min(100 * 2 ** attempt, 2000) : cause),
    },
  }) as RedisClientType
  // Each kind of record adds a listener, and there are more than ten kinds.
  client.setMaxListeners(0)
  client.on('error', (error: unknown) => {
    if (open) log.error({ err: error }, 'connection to Redis failed')
  })
  try {
    await client.connect()
    await withinDeadline(client.ping(), CONNECT_MS)
    await refuseCluster(client)
    open = true
  } catch (error) {
    if (client.isOpen) client.destroy()
    ended.abort()
    throw new StateError(
      'STATE_UNREACHABLE',
      `The state store ${addressOf(url)} cannot be used: ${reasonOf(error)}`,
      error,
    )
  }
  const guard = new Guard({ store: addressOf(url), timeoutMs, probe: () => client.ping(), log })
  const leases = new RedisLeases((script, keys, args) =>
    guard.run(() => client.eval(script, { keys, arguments: args })),
  )
  const { signals, close: closeSignals } = openRedisSignals(client, log)
  const table: Backend['table'] = (namespace, options) =>
    new Table({
      store: new RedisStore(client, namespace, !UNLISTED.has(namespace)),
      namespace,
      guard,
      ...options,
    })
  return {
    table,
    epochs: [table('epoch')],
    locks: new LeaseLocks({ store: leases, log, signals, ms: leaseMs }),
    signals,
    advice: () =>
      redisAdvice(
        (section) => guard.run(() => client.info(section)),
        (name) => guard.run(() => client.configGet(name)),
      ),
    async close() {
      open = false
      guard.close()
      closeSignals()
      // A hanging store would never confirm the end of the connection.
      if (client.isReady && !guard.open) await withinDeadline(client.close(), timeoutMs).catch(() => client.destroy())
      else if (client.isOpen) client.destroy()
      ended.abort()
    },
  }
}

/** The address without user, password and options. */
function addressOf(url: string): string {
  const { protocol, host } = new URL(url)
  return `${protocol}//${host}`
}
