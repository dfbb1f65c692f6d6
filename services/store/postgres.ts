import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import pLimit from 'p-limit'
import pg from 'pg'
import type { ServicesLog } from '../log.js'
import {
  COPYING,
  CREATE_COPYING,
  type Database,
  DatabaseUnavailableError,
  incompleteError,
  type Lease,
  type Row,
  type Schema,
  type Snapshot,
  type TransactionOptions,
  type Value,
} from './database.js'
import { type Guard, type SharedDatabase, SharedLease } from './lease.js'
import { PostgresClaim, SESSION } from './postgres-claim.js'
import { asking, asUnknown, CONFLICTS, codeOf, IN_FAILED } from './postgres-errors.js'
import { LockQueues, locksOf, statementOf } from './postgres-locks.js'
import { FUNCTIONS, inPostgres, LEASES } from './postgres-sql.js'
import { Session, tablesOver } from './postgres-statements.js'
import { type DatabaseWatch, watched } from './store-metrics.js'

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

/** Snapshots at a time: each takes a connection for reads, and its reader needs others. */
const SNAPSHOTS = 2

/** Time after which PostgreSQL ends the transaction of a process that has stopped, so that others get its rows. */
const IDLE_MS = 10_000

/** Most attempts at a transaction that others conflict with, and the longest pause before the second, ms. */
const MAX_ATTEMPTS = 10
const PAUSE_MS = 10

/**
 * A row that was not there when a transaction looked for it: others have added it meanwhile, and another attempt finds
 * it. One that is there then is a mistake of the statement.
 */
const DUPLICATE = '23505'
const MAX_DUPLICATES = 3

/** How values of these types are read, by PostgreSQL's numbers of them: as SQLite has them. */
const PARSERS: Readonly<Record<number, (text: string) => number>> = {
  [pg.types.builtins.BOOL]: (text) => (text === 't' ? 1 : 0),
  [pg.types.builtins.INT8]: Number,
  // Sums.
  [pg.types.builtins.NUMERIC]: Number,
}

/**
 * Opens the schema of a service in a PostgreSQL of version 14 or later, and makes it or brings it up to date. Several
 * processes may have it open, unless the schema is exclusive. Throws DatabaseUnavailableError, DataInUseError, and
 * RangeError when a later version of this program wrote the schema.
 * @param url `postgres://user:password@host/database`; `sslmode` and other settings as the driver has them
 */
export async function openPostgres<T>(
  url: string,
  schema: Schema<T>,
  log: ServicesLog,
  watch?: DatabaseWatch,
): Promise<PostgresDatabase<T>> {
  for (const name of ['options', 'application_name']) {
    if (new URL(url).searchParams.has(name))
      throw new RangeError(`The URL of the database must not have ${name}: dealgate sets them.`)
  }
  const claim = schema.exclusive
    ? await asking(() => PostgresClaim.take(url, schemaOf(schema), schema, log))
    : undefined
  try {
    const id = await migrate(url, schema)
    await asking(async () => claim?.begin())
    return connect(url, schema, log, { id, claim, watch })
  } catch (error) {
    await claim?.close()
    throw error
  }
}

/** As `openPostgres`, for a schema that is there and stays as it is. */
export function readPostgres<T>(url: string, schema: Schema<T>, log: ServicesLog): Database<T> {
  return connect(url, schema, log, {})
}

/** What goes with a database. */
interface ConnectionOptions {
  readonly id?: string
  readonly claim?: PostgresClaim | undefined
  readonly watch?: DatabaseWatch | undefined
}

function connect<T>(url: string, schema: Schema<T>, log: ServicesLog, options: ConnectionOptions): PostgresDatabase<T> {
  const connections = (max: number, min: number, pipeline = false) => openPool(url, schema, log, { max, min, pipeline })
  const pools = {
    // One stays, by which a copy finds out whether the service runs.
    reads: connections(MAX_CONNECTIONS.reads, 1),
    // Statements that the work does not wait for one by one go out together.
    transactions: connections(MAX_CONNECTIONS.transactions, 0, true),
    leases: connections(MAX_CONNECTIONS.leases, 0),
  }
  options.watch?.pool(() => {
    const sum = (count: (pool: pg.Pool) => number) => Object.values(pools).reduce((all, pool) => all + count(pool), 0)
    const free = sum(({ idleCount }) => idleCount)
    return { busy: sum(({ totalCount }) => totalCount) - free, free, waiting: sum(({ waitingCount }) => waitingCount) }
  })
  return new PostgresDatabase(pools, schema, log, options)
}

/** The connections of one process to a schema. */
type Pools = Readonly<Record<keyof typeof MAX_CONNECTIONS, pg.Pool>>

function openPool<T>(
  url: string,
  schema: Schema<T>,
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

class PostgresDatabase<T> implements Database<T>, SharedDatabase<T> {
  readonly read: T
  /** Of the schema, made with it; empty where it was opened to be read. */
  readonly id: string
  readonly shared = true
  readonly #pools: Pools
  readonly #schema: Schema<T>
  readonly #claim: PostgresClaim | undefined
  readonly #watch: DatabaseWatch | undefined
  readonly #log: ServicesLog
  /** The tables over a connection, with its prepared statements. */
  readonly #sessions = new WeakMap<pg.PoolClient, Session<T>>()
  readonly #running = new Set<Promise<unknown>>()
  readonly #snapshots = pLimit(SNAPSHOTS)
  readonly #queues = new LockQueues(CONNECT_MS)
  #closed: Promise<void> | undefined

  constructor(pools: Pools, schema: Schema<T>, log: ServicesLog, { id = '', claim, watch }: ConnectionOptions) {
    this.id = id
    this.#pools = pools
    this.#schema = schema
    this.#claim = claim
    this.#watch = watch
    this.#log = log
    this.read = tablesOver(pools.reads, schema, { claim, watch })
  }

  transaction<R>(work: (tables: T) => Promise<R>, options?: TransactionOptions): Promise<R> {
    return this.#transaction(work, options)
  }

  lease(name: string): Lease<T> {
    return new SharedLease(name, this, this.#log)
  }

  async ask(sql: string, values: readonly Value[]): Promise<readonly Row[]> {
    return (await asking(() => this.#pools.leases.query(sql, [...values]))).rows
  }

  guarded(guard: Guard): Database<T> {
    return {
      read: this.read,
      shared: this.shared,
      transaction: (work, options) => this.#transaction(work, options, guard),
      lease: (name) => this.lease(name),
      snapshot: () => this.snapshot(),
      requireRoom: () => this.requireRoom(),
      close: () => this.close(),
    }
  }

  #transaction<R>(work: (tables: T) => Promise<R>, options: TransactionOptions = {}, lease?: Guard): Promise<R> {
    const locks = options.locks && locksOf(schemaOf(this.#schema), options)
    const guards = [this.#claim, lease].filter((guard) => guard !== undefined)
    if (this.#closed !== undefined) return Promise.reject(new Error('The database is closed.'))
    const repeating = watched(() => this.#repeat(work, { guards, locks }), this.#watch, 'transaction')
    const running = repeating.finally(() => this.#running.delete(running))
    this.#running.add(running)
    return running
  }

  snapshot(): Promise<Snapshot<T>> {
    return new Promise((resolve, reject) => {
      const hold = async () => {
        const snapshot = await this.#openSnapshot()
        await new Promise<void>((closed) => {
          resolve({ read: snapshot.read, close: () => snapshot.close().finally(closed) })
        })
      }
      this.#snapshots(hold).catch(reject)
    })
  }

  async #openSnapshot(): Promise<Snapshot<T>> {
    this.#claim?.require()
    const client = await asking(() => this.#pools.reads.connect())
    try {
      // Its reader may do other work between two statements, for long.
      const begin = 'BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; SET LOCAL idle_in_transaction_session_timeout = 0'
      await asking(() => client.query(begin), true)
      // The first statement determines the moment.
      await asking(() => client.query('SELECT 1'), true)
      const session = this.#sessionOf(client)
      return {
        read: session.open(),
        close: async () => {
          session.close()
          const ended = await client.query('ROLLBACK').catch((error: Error) => error)
          client.release(ended instanceof Error)
        },
      }
    } catch (error) {
      client.release(true)
      throw error
    }
  }

  /** The database has its own disk. */
  requireRoom(): void {}

  close(): Promise<void> {
    this.#closed ??= Promise.allSettled(this.#running)
      .then(async () => {
        await Promise.all(Object.values(this.#pools).map((pool) => pool.end()))
      })
      .finally(() => this.#claim?.close())
    return this.#closed
  }

  async #repeat<R>(work: (tables: T) => Promise<R>, how: How): Promise<R> {
    for (let attempt = 1; ; attempt++) {
      try {
        return await this.#attempt(work, how)
      } catch (error) {
        const code = codeOf(error)
        if (!CONFLICTS.includes(code) && (code !== DUPLICATE || attempt > MAX_DUPLICATES)) throw error
        if (attempt === MAX_ATTEMPTS)
          throw new DatabaseUnavailableError('Too many transactions at once.', { cause: error })
        this.#watch?.retried()
        await sleep(Math.random() * PAUSE_MS * 2 ** attempt)
      }
    }
  }

  async #attempt<R>(work: (tables: T) => Promise<R>, how: How): Promise<R> {
    this.#claim?.require()
    const begun = await this.#queues.enter(how.locks ?? [])
    const client = await asking(() => this.#pools.transactions.connect()).catch((error) => {
      begun()
      throw error
    })
    let broken = true
    const session = this.#sessionOf(client)
    try {
      await asking(() => this.#begin(client, how), true).finally(begun)
      const result = await work(session.open())
      session.close()
      const { command } = await asking(() => client.query('COMMIT')).catch(asUnknown)
      if (command !== 'COMMIT') throw new Error('A transaction went on after an error of a statement.')
      broken = false
      return result
    } catch (caught) {
      // Some of the work may go on: its tables stay closed, and the next transaction gets others.
      session.close()
      this.#sessions.delete(client)
      // Of statements that go out together, all that follow one that fails do so, too.
      const error = codeOf(caught) === IN_FAILED ? (session.failure ?? caught) : caught
      if (!(error instanceof DatabaseUnavailableError)) {
        await asking(() => client.query('ROLLBACK'))
        broken = false
      }
      throw error
    } finally {
      client.release(broken)
    }
  }

  async #begin(client: pg.PoolClient, { guards, locks }: How): Promise<void> {
    const begin = `BEGIN ISOLATION LEVEL ${locks === undefined ? 'SERIALIZABLE' : 'READ COMMITTED'}`
    const taken = (locks ?? []).map(statementOf)
    // One round trip. The driver has types for one statement only.
    const begun: unknown = await client.query([begin, ...guards.map(({ check }) => check), ...taken].join(';'))
    for (const [i, guard] of guards.entries()) {
      if ((begun as pg.QueryResult[])[i + 1]?.rowCount !== 1) throw guard.lost()
    }
  }

  #sessionOf(client: pg.PoolClient): Session<T> {
    const known = this.#sessions.get(client)
    if (known !== undefined) return known
    const session = new Session(client, this.#schema)
    this.#sessions.set(client, session)
    return session
  }
}

/** How a transaction runs. */
interface How {
  readonly guards: readonly Guard[]
  readonly locks: ReturnType<typeof locksOf> | undefined
}

export function schemaOf({ name }: Pick<Schema<unknown>, 'name'>): string {
  return `dealgate_${name}`
}

/**
 * Resolves with the id of the schema. Processes that start at the same time take turns. A failure leaves the version
 * before a step.
 */
async function migrate(url: string, schema: Schema<unknown>): Promise<string> {
  const name = schemaOf(schema)
  // Without limits of time: an index of a large table takes as long as it takes.
  const options = `-c search_path=${name}`
  const client = new pg.Client({ connectionString: url, connectionTimeoutMillis: CONNECT_MS, options })
  client.on('error', () => {})
  const query = (text: string, values?: unknown[]) => asking(() => client.query(text, values))
  try {
    await asking(() => client.connect())
    await query('BEGIN')
    await query('SELECT pg_advisory_xact_lock(hashtextextended($1, 0))', [name])
    await query(`CREATE SCHEMA IF NOT EXISTS ${name}`)
    await query('CREATE TABLE IF NOT EXISTS schema_version (version bigint NOT NULL)')
    if (!schema.filling && (await query('SELECT to_regclass($1) AS found', [COPYING])).rows[0].found !== null) {
      throw incompleteError(schema)
    }
    await query(FUNCTIONS)
    await query(LEASES)
    await query('CREATE TABLE IF NOT EXISTS identity (id text NOT NULL)')
    await query('INSERT INTO identity (id) SELECT $1 WHERE NOT EXISTS (SELECT 1 FROM identity)', [randomUUID()])
    const identity = await query('SELECT id FROM identity')
    const { rows } = await query('SELECT version FROM schema_version')
    const version = Number(rows[0]?.version ?? 0)
    if (version > schema.steps.length) {
      throw new RangeError(`A later version of dealgate has written the data of ${schema.owner}: start that version.`)
    }
    for (const step of schema.steps.slice(version)) await query(inPostgres(step))
    // Before others see the schema: a service must not start with what the copy will fill.
    if (schema.filling && rows.length === 0) await query(CREATE_COPYING)
    const change =
      rows.length === 0 ? 'INSERT INTO schema_version VALUES ($1)' : 'UPDATE schema_version SET version = $1'
    await query(change, [schema.steps.length])
    await query('COMMIT')
    return identity.rows[0].id
  } finally {
    // Rolls back what has not been committed.
    await client.end().catch(() => {})
  }
}
