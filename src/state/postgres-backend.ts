import pg from 'pg'
import type { Logger } from '../log.js'
import type { Backend } from './backend.js'
import { reasonOf, StateError } from './errors.js'
import { LeaseLocks } from './lease-locks.js'
import { LEASE_TABLE, PostgresLeases } from './postgres-leases.js'
import { PostgresStore } from './postgres-store.js'
import { type Namespace, Table } from './table.js'

const CONNECT_MS = 5000
const DEADLINE_MS = 10_000
const CONNECTIONS = 16
const NAMESPACES: readonly Namespace[] = ['object', 'upload', 'part', 'completed']

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
    for (const namespace of NAMESPACES) {
      await createTable(
        pool,
        `CREATE TABLE IF NOT EXISTS ${tableOf(namespace)} (key varchar(255) PRIMARY KEY, value text)`,
      )
    }
    await createTable(pool, LEASE_TABLE)
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

function tableOf(namespace: Namespace): string {
  return `dealgate_${namespace}`
}

async function createTable(pool: pg.Pool, statement: string): Promise<void> {
  try {
    await pool.query(statement)
  } catch (error) {
    // Two proxies at once: IF NOT EXISTS does not hold between looking and making (https://www.postgresql.org/docs/current/errcodes-appendix.html).
    if (!(error instanceof pg.DatabaseError) || !['23505', '42P07'].includes(error.code ?? '')) throw error
  }
}
