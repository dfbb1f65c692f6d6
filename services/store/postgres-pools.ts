import pg from 'pg'
import type { ServicesLog } from '../log.js'
import type { Schema } from './database.js'
import { SESSION } from './postgres-claim.js'

/** Longest wait for a connection, ms. */
export const CONNECT_MS = 5000

/** Name of the connections of a copy, and of its lock. */
export const COPY = 'dealgate copy'

/** Longest wait for the answer to a statement, ms. */
const MAX_STATEMENT_MS = 30_000

/**
 * Most connections. Transactions wait for one another, and take all of theirs while one is stopped: others are for what
 * waits for none, and for leases, which would be lost meanwhile.
 */
const MAX_CONNECTIONS = { transactions: 9, reads: 5, leases: 2 }

/** Time after which PostgreSQL ends the transaction of a process that has stopped, so that others get its rows. */
const IDLE_MS = 10_000

/** How values of these types are read, by PostgreSQL's numbers of them: as SQLite has them. */
const PARSERS: Readonly<Record<number, (text: string) => number>> = {
  [pg.types.builtins.BOOL]: (text) => (text === 't' ? 1 : 0),
  [pg.types.builtins.INT8]: Number,
  // Sums have this type.
  [pg.types.builtins.NUMERIC]: Number,
}

/** The connections of one process to a schema. */
export type Pools = Readonly<Record<keyof typeof MAX_CONNECTIONS, pg.Pool>>

/** Opens the connections of one process to a schema. */
export function openPools(url: string, schema: Schema<unknown>, log: ServicesLog): Pools {
  const connections = (max: number, min: number, pipeline = false) => openPool(url, schema, log, { max, min, pipeline })
  return {
    // One stays, by which a copy finds out whether the service runs.
    reads: connections(MAX_CONNECTIONS.reads, 1),
    // Statements that the work does not wait for one by one go out together.
    transactions: connections(MAX_CONNECTIONS.transactions, 0, true),
    leases: connections(MAX_CONNECTIONS.leases, 0),
  }
}

function openPool(
  url: string,
  schema: Schema<unknown>,
  log: ServicesLog,
  size: { readonly max: number; readonly min: number; readonly pipeline: boolean },
): pg.Pool {
  const pool = new pg.Pool({
    connectionString: url,
    ...size,
    application_name: schema.filling ? COPY : schemaOf(schema),
    connectionTimeoutMillis: CONNECT_MS,
    // A statement that times out also ends its connection, which may be dead.
    query_timeout: MAX_STATEMENT_MS,
    options: settings(schemaOf(schema)),
    types: { getTypeParser: (type, format) => PARSERS[type] ?? pg.types.getTypeParser(type, format) },
  })
  // Without a listener, losing an idle connection would end the process (https://node-postgres.com/apis/pool#error).
  pool.on('error', (err) => log.warn({ err }, 'A connection to PostgreSQL has failed.'))
  // One that is in use fails its statement, or the next one.
  pool.on('connect', (client) => client.on('error', () => {}))
  return pool
}

function settings(schema: string): string {
  const own = [
    `search_path=${schema}`,
    `statement_timeout=${MAX_STATEMENT_MS}`,
    `idle_in_transaction_session_timeout=${IDLE_MS}`,
    // A plan that was made for an empty table must do for a large one. What an index does needs no compiler.
    'enable_seqscan=off',
    'jit=off',
  ]
  return [...own, ...SESSION].map((setting) => `-c ${setting}`).join(' ')
}

/** Name of the schema of a service in PostgreSQL. */
export function schemaOf({ name }: Pick<Schema<unknown>, 'name'>): string {
  return `dealgate_${name}`
}
