import pg from 'pg'
import type { Logger } from '../log.js'
import type { Backend } from './backend.js'
import { reasonOf, StateError } from './errors.js'
import { LeaseLocks } from './lease-locks.js'
import { LEASE_SCHEMA, PostgresLeases } from './postgres-leases.js'
import { PostgresStore } from './postgres-store.js'
import { Table } from './table.js'

const CONNECT_MS = 5000
const DEADLINE_MS = 10_000
const CONNECTIONS = 16
/** Kinds with a table of their own; all others share one. */
const NAMESPACES: readonly string[] = ['object', 'upload', 'part', 'completed']
const OTHERS = 'other'

/**
 * Everything we need, unless it is there. Two proxies that start at once take turns: IF NOT EXISTS alone does not hold between looking and making.
 * Collation C: keys of one namespace lie together in the index, in the order of their bytes.
 */
const SCHEMA = `
  BEGIN;
  SELECT pg_advisory_xact_lock(hashtextextended('dealgate schema', 0));
  ${[...NAMESPACES, OTHERS].map(tableSchema).join('')}
  ${LEASE_SCHEMA}
  COMMIT;`

/** Records in PostgreSQL 11 or newer, shared by all proxies that name it. Throws StateError STATE_UNREACHABLE when it does not answer or refuses us. */
export async function openPostgresBackend(url: string, log: Logger): Promise<Backend> {
  const pool = new pg.Pool({
    connectionString: url,
    max: CONNECTIONS,
    connectionTimeoutMillis: CONNECT_MS,
    query_timeout: DEADLINE_MS,
  })
  // Without a listener a connection lost while idle would end the process (https://node-postgres.com/apis/pool#error).
  pool.on('error', (error) => log.error({ err: error }, 'connection to PostgreSQL failed'))
  try {
    // The adapter makes its table too, but tells of a failure only in an event.
    await pool.query(SCHEMA)
  } catch (error) {
    await pool.end()
    const { host } = new URL(url)
    throw new StateError(
      'STATE_UNREACHABLE',
      `The state store postgres://${host} cannot be used: ${reasonOf(error)}`,
      error,
    )
  }
  return {
    table: (namespace, options) =>
      new Table({ store: new PostgresStore(pool, tableOf(namespace)), namespace, log, ...options }),
    locks: new LeaseLocks({ store: new PostgresLeases(pool), log }),
    close: () => pool.end(),
  }
}

function tableOf(namespace: string): string {
  return `dealgate_${NAMESPACES.includes(namespace) ? namespace : OTHERS}`
}

function tableSchema(namespace: string): string {
  return `CREATE TABLE IF NOT EXISTS ${tableOf(namespace)} (key text COLLATE "C" PRIMARY KEY, value text);`
}
