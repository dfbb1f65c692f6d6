import { Socket } from 'node:net'
import pg from 'pg'
import { HOUR_MS, withinDeadline } from '../../common/time.js'
import type { Backend, EngineOptions } from '../../src/state/backend.js'
import { reasonOf, StateError } from '../../src/state/errors.js'
import { Guard } from '../../src/state/guard.js'
import { Table } from '../../src/state/records/table.js'
import { guarded } from '../guarded-leases.js'
import { openSignals } from '../lasting-signals.js'
import { LeaseLocks } from '../lease-locks.js'
import { LEASE_SCHEMA, PostgresLeases } from './leases.js'
import { postgresSignals } from './signals.js'
import { PostgresStore } from './store.js'

const CONNECT_MS = 5000

/** Timeout for creating the tables, which another proxy may be doing at the same time, ms. */
const SCHEMA_MS = 10_000
const CONNECTIONS = 16

/** Kinds of records with their own table. All other kinds share one. */
const NAMESPACES: readonly string[] = ['object', 'upload', 'part', 'completed']
const OTHERS = 'other'

/** Interval at which rows of leases that ended long ago are removed, ms. */
const CLEAN_MS = HOUR_MS

/**
 * Creates everything needed unless it exists. Proxies that start at the same time take turns, because IF NOT EXISTS is
 * not atomic. With collation C, keys of one namespace are adjacent in the index, in byte order.
 */
const SCHEMA = `
  BEGIN;
  SELECT pg_advisory_xact_lock(hashtextextended('dealgate schema', 0));
  ${[...NAMESPACES, OTHERS].map(tableSchema).join('')}
  ${LEASE_SCHEMA}
  COMMIT;`

/**
 * Records in PostgreSQL 11 or newer, shared by all proxies that use the database. Throws StateError STATE_UNREACHABLE
 * when it does not answer or refuses the connection.
 */
export async function openPostgresBackend({ url, log, timeoutMs, leaseMs }: EngineOptions): Promise<Backend> {
  // The driver waits for the server to confirm the end of a connection, and does not end an attempt to connect.
  const sockets = new Set<Socket>()
  const stream = () => {
    const socket = new Socket()
    sockets.add(socket)
    return socket.once('close', () => sockets.delete(socket))
  }
  const pool = new pg.Pool({
    connectionString: url,
    stream,
    max: CONNECTIONS,
    connectionTimeoutMillis: CONNECT_MS,
    // A query that times out also ends its connection, which may be dead.
    query_timeout: 2 * timeoutMs,
  })
  // The declared type of a query lacks its timeout (https://node-postgres.com/apis/client).
  const schema: pg.QueryConfig & { query_timeout: number } = { text: SCHEMA, query_timeout: SCHEMA_MS }
  // Without a listener, losing an idle connection would end the process (https://node-postgres.com/apis/pool#error).
  pool.on('error', (error) => log.error({ err: error }, 'connection to PostgreSQL failed'))
  try {
    // The adapter also creates its table, but reports a failure only by an event.
    await pool.query(schema)
  } catch (error) {
    await pool.end()
    for (const socket of sockets) socket.destroy()
    const { host } = new URL(url)
    throw new StateError(
      'STATE_UNREACHABLE',
      `The state store postgres://${host} cannot be used (--state): ${reasonOf(error)}`,
      error,
    )
  }
  const probe = () => pool.query('SELECT 1')
  const guard = new Guard({ store: `postgres://${new URL(url).host}`, timeoutMs, probe, log })
  const leases = new PostgresLeases(pool)
  const clean = () =>
    guard.run(() => leases.clean()).catch((err) => log.debug({ err }, 'could not remove rows of ended leases'))
  const cleaning = setInterval(clean, CLEAN_MS).unref()
  void clean()
  const query = (sql: string, values: readonly string[]) => guard.run(() => pool.query(sql, [...values]))
  const { signals, close: closeSignals } = openSignals(postgresSignals({ url, stream, timeoutMs, query }), log)
  return {
    table: (namespace, options) =>
      new Table({ store: new PostgresStore(pool, tableOf(namespace)), namespace, guard, ...options }),
    identities: [...NAMESPACES, OTHERS].map(
      (name) => new Table({ store: new PostgresStore(pool, tableOf(name)), namespace: 'epoch', guard }),
    ),
    locks: new LeaseLocks({
      store: guarded(leases, guard),
      log,
      signals,
      ms: leaseMs,
    }),
    signals,
    advice: () => postgresAdvice(async (sql) => (await guard.run(() => pool.query(sql))).rows),
    async close() {
      clearInterval(cleaning)
      guard.close()
      closeSignals()
      // A hanging store would never confirm the end of the connections.
      await withinDeadline(pool.end(), 2 * timeoutMs).catch((err) =>
        log.warn({ err }, 'could not close all connections'),
      )
      for (const socket of sockets) socket.destroy()
    },
  }
}

function tableOf(namespace: string): string {
  return `dealgate_${NAMESPACES.includes(namespace) ? namespace : OTHERS}`
}

function tableSchema(namespace: string): string {
  return `CREATE TABLE IF NOT EXISTS ${tableOf(namespace)} (key text COLLATE "C" PRIMARY KEY, value text);`
}

/** Replication lag of a standby that causes a warning, seconds. */
const LAG_SECONDS = 10

/** `dealgate_lease_wait` is UNLOGGED by design: it holds the waiters of this moment. */
const SETTINGS = `
  SELECT current_setting('synchronous_commit') AS commit, current_setting('fsync') AS fsync,
    current_setting('full_page_writes') AS pages, current_setting('synchronous_standby_names') AS standbys,
    pg_is_in_recovery() AS recovering,
    (SELECT count(*) FROM pg_class WHERE relname LIKE 'dealgate\\_%' AND relname <> 'dealgate_lease_wait' AND relkind = 'r'
      AND relpersistence = 'u')::int AS unlogged`

/** The lag is null for accounts that may not see it (https://www.postgresql.org/docs/current/monitoring-stats.html). */
const STANDBYS = `
  SELECT count(*)::int AS count, coalesce(max(extract(epoch FROM replay_lag)), 0)::float8 AS lag FROM pg_stat_replication`

interface Settings {
  readonly commit: string
  readonly fsync: string
  readonly pages: string
  readonly standbys: string
  readonly recovering: boolean
  readonly unlogged: number
}

interface Standbys {
  readonly count: number
  /** Lag of the slowest standby, seconds. */
  readonly lag: number
}

/**
 * Warnings about PostgreSQL settings that may lose acknowledged records
 * (https://www.postgresql.org/docs/current/runtime-config-wal.html).
 */
export async function postgresAdvice(query: (sql: string) => Promise<unknown[]>): Promise<string[]> {
  const [settings] = (await query(SETTINGS)) as Settings[]
  const [standbys] = (await query(STANDBYS)) as Standbys[]
  return settings && standbys ? [...settingsAdvice(settings), ...standbyAdvice(settings, standbys)] : []
}

function settingsAdvice({ commit, fsync, pages, recovering, unlogged }: Settings): string[] {
  const advice: string[] = []
  if (commit === 'off') {
    advice.push(
      'PostgreSQL has `synchronous_commit = off`: a crash loses what was acknowledged last. Set it to `on` for the role that dealgate logs in as.',
    )
  }
  if (fsync === 'off' || pages === 'off') {
    advice.push(
      'PostgreSQL has `fsync` or `full_page_writes` off: a power cut may destroy the database. Set both to `on`.',
    )
  }
  if (recovering) advice.push('This PostgreSQL is a standby and takes no writes. Name the primary in --state.')
  if (unlogged > 0) {
    advice.push(
      `${unlogged} tables of dealgate are UNLOGGED: a crash empties them. Change each with ALTER TABLE … SET LOGGED.`,
    )
  }
  return advice
}

function standbyAdvice({ commit, standbys }: Settings, { count, lag }: Standbys): string[] {
  const advice: string[] = []
  if (count > 0 && (standbys === '' || commit === 'local' || commit === 'off')) {
    advice.push(
      'PostgreSQL has asynchronous standbys: a failover to one loses what was acknowledged last. Name one in `synchronous_standby_names`.',
    )
  }
  if (lag > LAG_SECONDS) advice.push(`A standby of PostgreSQL is ${Math.round(lag)} seconds behind: repair it.`)
  return advice
}
