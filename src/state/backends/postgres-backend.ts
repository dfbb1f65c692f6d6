import { Socket } from 'node:net'
import pg from 'pg'
import { withinDeadline } from '../../common/deadline.js'
import { HOUR_MS } from '../../common/durations.js'
import type { Logger } from '../../common/log.js'
import { reasonOf, StateError } from '../errors.js'
import { Guard } from '../integrity/guard.js'
import { LeaseLocks } from '../locks/lease-locks.js'
import { LEASE_SCHEMA } from '../locks/postgres-lease-schema.js'
import { PostgresLeases } from '../locks/postgres-leases.js'
import { Table } from '../records/table.js'
import { openPostgresSignals } from '../signals/postgres-signals.js'
import type { Backend } from './backend.js'
import { postgresAdvice } from './postgres-advice.js'
import { PostgresStore } from './postgres-store.js'

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
 * @param timeoutMs longest wait for the answer to a call
 */
export async function openPostgresBackend(
  url: string,
  log: Logger,
  timeoutMs: number,
  leaseMs?: number,
): Promise<Backend> {
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
      `The state store postgres://${host} cannot be used: ${reasonOf(error)}`,
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
  const { signals, close: closeSignals } = openPostgresSignals({ url, log, stream, timeoutMs, query })
  return {
    table: (namespace, options) =>
      new Table({ store: new PostgresStore(pool, tableOf(namespace)), namespace, guard, ...options }),
    epochs: [...NAMESPACES, OTHERS].map(
      (name) => new Table({ store: new PostgresStore(pool, tableOf(name)), namespace: 'epoch', guard }),
    ),
    locks: new LeaseLocks({
      store: {
        acquire: (lease, ms, waitedMs) => guard.run(() => leases.acquire(lease, ms, waitedMs)),
        renew: (lease, ms) => guard.run(() => leases.renew(lease, ms)),
        yield: (lease, ms) => guard.run(() => leases.yield(lease, ms)),
        release: (lease) => guard.run(() => leases.release(lease)),
      },
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
