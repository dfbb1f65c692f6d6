import { setTimeout as sleep } from 'node:timers/promises'
import pLimit from 'p-limit'
import type pg from 'pg'
import type { ServicesLog } from '../log.js'
import {
  type Database,
  DatabaseUnavailableError,
  type Lease,
  type Row,
  type Schema,
  type Snapshot,
  type TransactionOptions,
  type Value,
} from './database.js'
import { type Guard, type SharedDatabase, SharedLease } from './lease.js'
import { PostgresClaim } from './postgres-claim.js'
import { asking, asUnknown, CONFLICTS, codeOf, IN_FAILED } from './postgres-errors.js'
import { LockQueues, locksOf, statementOf } from './postgres-locks.js'
import { migrate } from './postgres-migrate.js'
import { CONNECT_MS, openPools, type Pools, schemaOf } from './postgres-pools.js'
import { Session, tablesOver } from './postgres-statements.js'
import { type DatabaseWatch, watched } from './store-metrics.js'

/** Snapshots at a time: each takes a connection for reads, and its reader needs others. */
const SNAPSHOTS = 2

/** Most attempts at a transaction that others conflict with, and the longest pause before the second, ms. */
const MAX_ATTEMPTS = 10
const PAUSE_MS = 10

/**
 * A row that was not there when a transaction looked for it: others have added it meanwhile, and another attempt finds
 * it. One that is there then is a mistake of the statement.
 */
const DUPLICATE = '23505'
const MAX_DUPLICATES = 3

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

/** Opens a schema that is there and stays as it is. */
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
  const pools = openPools(url, schema, log)
  options.watch?.pool(() => {
    const sum = (count: (pool: pg.Pool) => number) => Object.values(pools).reduce((all, pool) => all + count(pool), 0)
    const free = sum(({ idleCount }) => idleCount)
    return { busy: sum(({ totalCount }) => totalCount) - free, free, waiting: sum(({ waitingCount }) => waitingCount) }
  })
  return new PostgresDatabase(pools, schema, log, options)
}

class PostgresDatabase<T> implements Database<T>, SharedDatabase<T> {
  readonly read: T
  /** Id of the schema, made with it; empty where it was opened to be read. */
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
      // When statements go out together, all that follow a failed one fail, too.
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
