import { createClient, type RedisClientType } from '@keyv/redis'
import { pauseAfter } from '../../common/backoff.js'
import { withinDeadline } from '../../common/time.js'
import type { Backend, EngineOptions } from '../../src/state/backend.js'
import { reasonOf, StateError } from '../../src/state/errors.js'
import { Guard } from '../../src/state/guard.js'
import { Table } from '../../src/state/records/table.js'
import { guarded } from '../guarded-leases.js'
import { openSignals } from '../lasting-signals.js'
import { LeaseLocks } from '../lease-locks.js'
import { RedisLeases } from './leases.js'
import { redisSignals } from './signals.js'
import { RedisStore } from './store.js'

const CONNECT_MS = 5000

/** Before a connection that was lost is made anew. */
const BACKOFF = { firstMs: 100, longestMs: 2000 }

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
 */
export async function openRedisBackend({ url, log, timeoutMs, leaseMs }: EngineOptions): Promise<Backend> {
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
      reconnectStrategy: (attempt, cause) => (open ? pauseAfter(attempt + 1, BACKOFF) : cause),
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
      `The state store ${addressOf(url)} cannot be used (--state): ${reasonOf(error)}`,
      error,
    )
  }
  const guard = new Guard({ store: addressOf(url), timeoutMs, probe: () => client.ping(), log })
  const leases = new RedisLeases((script, keys, args) => client.eval(script, { keys, arguments: args }))
  const { signals, close: closeSignals } = openSignals(redisSignals(client), log)
  const table: Backend['table'] = (namespace, options) =>
    new Table({
      store: new RedisStore(client, namespace, !UNLISTED.has(namespace)),
      namespace,
      guard,
      ...options,
    })
  return {
    table,
    identities: [table('epoch')],
    locks: new LeaseLocks({ store: guarded(leases, guard), log, signals, ms: leaseMs }),
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

/** Replication lag of a replica that causes a warning, seconds. */
const LAG_SECONDS = 10

type Facts = ReadonlyMap<string, string>

/**
 * Warnings about Redis settings that may lose acknowledged records.
 * @param info runs `INFO <section>` (https://redis.io/docs/latest/commands/info/)
 * @param config runs `CONFIG GET <name>`, which managed services refuse; its settings are skipped then
 */
export async function redisAdvice(
  info: (section: string) => Promise<unknown>,
  config: (name: string) => Promise<unknown>,
): Promise<string[]> {
  const read = async (section: string) => readInfo(String(await info(section)))
  const [persistence, memory, replication] = await Promise.all([
    read('persistence'),
    read('memory'),
    read('replication'),
  ])
  const appendfsync = await config('appendfsync').then(
    (found) => (found as Record<string, unknown> | null)?.appendfsync,
    () => undefined,
  )
  return [
    ...persistenceAdvice(persistence.get('aof_enabled'), appendfsync),
    ...memoryAdvice(Number(memory.get('maxmemory')), memory.get('maxmemory_policy')),
    ...replicationAdvice(replication),
  ]
}

function persistenceAdvice(appendOnly: string | undefined, appendfsync: unknown): string[] {
  if (appendOnly === '0') {
    return [
      'Redis keeps no append-only file: a restart loses acknowledged records. Set `appendonly yes` and `appendfsync always`, or use Postgres.',
    ]
  }
  if (appendfsync === undefined || appendfsync === 'always') return []
  return [
    `Redis has \`appendfsync ${String(appendfsync)}\`: a crash of its machine loses what was acknowledged last. Set \`appendfsync always\`, or use Postgres.`,
  ]
}

/** Includes the policies that evict only expiring keys: the locks among proxies are such keys. */
function memoryAdvice(maxmemory: number, policy: string | undefined): string[] {
  if (!(maxmemory > 0) || policy === undefined || policy === 'noeviction') return []
  return [
    `Redis has \`maxmemory-policy ${policy}\`: it removes records and locks when its memory is full. Set \`maxmemory-policy noeviction\`.`,
  ]
}

function replicationAdvice(replication: Facts): string[] {
  if (replication.get('role') === 'slave') {
    return ['This Redis is a replica: it refuses writes, or loses them. Name the primary in --state.']
  }
  const count = Number(replication.get('connected_slaves') ?? 0)
  if (count === 0) return []
  const advice = [
    'Redis has asynchronous replicas: a failover to one loses what was acknowledged last. Set `min-replicas-to-write 1`, and prefer Postgres with synchronous replication.',
  ]
  for (let i = 0; i < count; i++) {
    const replica = replication.get(`slave${i}`) ?? ''
    const lag = Number(/(?:^|,)lag=(\d+)/.exec(replica)?.[1] ?? 0)
    if (/(?:^|,)state=online/.test(replica) && lag <= LAG_SECONDS) continue
    advice.push(`A replica of Redis is ${lag} seconds behind or not in step (${replica}): repair it before a failover.`)
  }
  return advice
}

function readInfo(text: string): Facts {
  return new Map(
    text.split('\r\n').flatMap((line): [string, string][] => {
      const at = line.indexOf(':')
      return line.startsWith('#') || at < 0 ? [] : [[line.slice(0, at), line.slice(at + 1)]]
    }),
  )
}
