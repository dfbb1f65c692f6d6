import { randomBytes } from 'node:crypto'
import type { MaybePromise } from '../../common/maybe-promise.js'

/** What a column holds. PostgreSQL's `bigint` becomes a number: no column exceeds 2^53. */
export type Value = string | number | bigint | Uint8Array | null

export type Row = Readonly<Record<string, Value>>

/**
 * A statement of a connection. Parameters are `?`, or `?1`, `?2` and so on where one is used several times. Names of
 * columns with capitals, and `"user"`, need quotes: PostgreSQL reads them otherwise.
 */
export interface Statement {
  /** The first row. */
  get<R = Row>(...values: readonly Value[]): Promise<R | undefined>
  /**
   * The first row, as `get` returns it, for rows that are read with each request: the engine answers from memory while
   * it knows that the database has not changed. Absent where it cannot know.
   */
  recent?<R = Row>(value: string | number): R | undefined
  all<R = Row>(...values: readonly Value[]): Promise<R[]>
  /** Like `all`, with each row as an array of its columns: half the time where there are many rows. */
  arrays<R extends readonly Value[]>(...values: readonly Value[]): Promise<R[]>
  /** Returns the number of rows that it has changed. */
  run(...values: readonly Value[]): Promise<number>
}

/** Runs statements: each by itself, or all in the transaction to which the connection belongs. */
export interface Connection {
  /** The engine whose SQL the statements are in, where the two do not understand one text. */
  readonly engine: 'sqlite' | 'postgres'
  prepare(sql: string): Statement
}

/**
 * A database of the services, in SQLite or PostgreSQL. `T` is the set of its tables: objects over a connection, of
 * which the engine makes one set per connection.
 */
export interface Database<T> {
  /** Each statement sees what was committed before it; several statements may see different states. */
  readonly read: T
  /**
   * Runs `work` in one transaction, as if there were no other at the same time, and resolves when it is durable. Work
   * that throws changes nothing. It may run several times, so it has no other effects; it uses only the tables that it
   * is given, and awaits nothing but these. Statements that it begins together run in this order, and take one round
   * trip to a server. Rejects with DatabaseUnavailableError when the database cannot be reached:
   * with UnknownCommitError when a commit may have taken place.
   */
  transaction<R>(work: (tables: T) => Promise<R>, options?: TransactionOptions): Promise<R>
  /** True when several processes may have it open. */
  readonly shared: boolean
  /** The lease of work that one process at a time may do. This process always has it unless the database is shared. */
  lease(name: string): Lease<T>
  /** Opens the last committed state. Close it soon, since no engine can clear away what has changed until then. */
  snapshot(): Promise<Snapshot<T>>
  /** Throws an ENOSPC error on a full disk, whose last space is kept for removals. Call it before an upload. */
  requireRoom(): void
  /** Waits for the transactions that have begun; later ones are rejected. */
  close(): Promise<void>
}

/**
 * Work that one process at a time does. Another gets the lease when it was not renewed in time, by the clock of the
 * database. `src/state/locks` has the like for proxies, by keys and in the order of those who wait.
 */
export interface Lease<T> {
  /**
   * The database for this work. Its transactions change nothing once another process has had the lease: they reject
   * with LeaseLostError, also in a process that was stopped meanwhile and knows nothing of it.
   */
  readonly db: Database<T>
  /** Aborts when the lease is lost; another one after each `take`. */
  readonly signal: AbortSignal
  /** True while others cannot have it. Ask it before each effect outside the database. */
  held(): boolean
  /**
   * Tries to get the lease, which is kept until it is released or lost. Call it when none of the work goes on that
   * was begun before a loss. Resolves with false when another process has it.
   */
  take(): Promise<boolean>
  /** Lets others have it at once. */
  release(): Promise<void>
}

/** The database at one moment. It stays the same while it is read, whatever is written meanwhile. */
export interface Snapshot<T> {
  readonly read: T
  close(): Promise<void>
}

export interface TransactionOptions {
  /** True for work that takes more space than it frees: on a full disk, it gets none of the reserve. Default false. */
  readonly takesRoom?: boolean
  /**
   * Names of what the work changes. It waits for other transactions with one of these names. In PostgreSQL it is not
   * serialisable then: each of its statements sees what was committed before, and what else it relies on, it locks by
   * row. For work that many do at once: serialisable transactions conflict also when they change neighbouring rows.
   */
  readonly locks?: readonly string[]
  /**
   * Further names, for a transaction with locks: it waits for those that have one of them among their locks, and these
   * wait for it.
   */
  readonly shares?: readonly string[]
}

/** The database does not answer, has lost the connection, or cannot end the transaction now: try again later. */
export class DatabaseUnavailableError extends Error {
  override readonly name: string = 'DatabaseUnavailableError'
}

/** The database has not answered the commit of a transaction, which may have taken place. */
export class UnknownCommitError extends DatabaseUnavailableError {
  override readonly name = 'UnknownCommitError'
}

/** Another process does this work now, and may have done it already. */
export class LeaseLostError extends DatabaseUnavailableError {
  override readonly name = 'LeaseLostError'
}

/**
 * Does what Promise.all does for work in one transaction: it waits for all of it when one part fails, and throws the
 * first error. What went on after the transaction had ended would be outside of it.
 */
export async function together<T extends readonly unknown[] | []>(
  works: T,
): Promise<{ -readonly [At in keyof T]: Awaited<T[At]> }> {
  try {
    return await Promise.all(works)
  } catch (error) {
    await Promise.allSettled(works)
    throw error
  }
}

/** Prepares the statements of a table, by name. */
export function statements<N extends string>(
  connection: Connection,
  sql: Readonly<Record<N, string>>,
): Record<N, Statement> {
  const names = Object.keys(sql) as N[]
  return Object.fromEntries(names.map((name) => [name, connection.prepare(sql[name])])) as Record<N, Statement>
}

/** A table with the statements by which its methods reach it. */
export abstract class Table<N extends string> {
  protected readonly sql: Record<N, Statement>

  constructor(connection: Connection, sql: Readonly<Record<N, string>>) {
    this.sql = statements(connection, sql)
  }
}

/**
 * The base of a table with these statements; a function makes those that differ between engines. The connection must
 * have the schema of the table.
 */
export function tableOf<N extends string>(
  sql: Readonly<Record<N, string>> | ((connection: Connection) => Readonly<Record<N, string>>),
): new (
  connection: Connection,
) => Table<N> {
  return class extends Table<N> {
    constructor(connection: Connection) {
      super(connection, typeof sql === 'function' ? sql(connection) : sql)
    }
  }
}

/** The first row, from memory where the engine keeps it. */
export function recent<R>(statement: Statement, value: string | number): MaybePromise<R | undefined> {
  return statement.recent ? statement.recent<R>(value) : statement.get<R>(value)
}

/** The texts of a JSON array, the first parameter, as rows: for `IN`. */
export function listed({ engine }: Pick<Connection, 'engine'>): string {
  return engine === 'sqlite' ? '(SELECT value FROM json_each(?1))' : '(SELECT json_array_elements_text(?1::json))'
}

/** The schema of a service, and its tables. */
export interface Schema<T> {
  /** Name of the service in messages, such as `the task platform`. */
  readonly owner: string
  /** Name of the service in PostgreSQL, where its tables have a schema of that name. */
  readonly name: string
  /** One step per version, in SQLite's words. A released step never changes; a new version appends one. */
  readonly steps: readonly string[]
  /**
   * Brings a SQLite database that has taken no step, of releases before the steps, to what the first one expects. One
   * transaction; runs again after a crash.
   */
  readonly adapt?: (db: EarlyDatabase) => void
  readonly tables: (connection: Connection) => T
  /**
   * True for a service of which one process may run at a time: in PostgreSQL it claims its schema, and a second one is
   * refused. A program beside it opens the schema without.
   */
  readonly exclusive?: boolean
  /** True for `dealgate state copy`, which alone opens what a copy has not completed. */
  readonly filling?: true
}

/** The table that a database has until a copy is complete; its column `source` names the place that is copied. */
export const COPYING = 'copying'

/** It has no row before the copy begins. */
export const CREATE_COPYING = `CREATE TABLE ${COPYING} (source TEXT NOT NULL)`

/** The error of a start with what a copy has not completed. */
export function incompleteError({ owner }: Pick<Schema<unknown>, 'owner'>): RangeError {
  return new RangeError(`The copy of the data of ${owner} is not complete: repeat \`dealgate state copy\`.`)
}

/** A SQLite database of an early release, or an empty one. */
export interface EarlyDatabase {
  /** Names of the columns; none when there is no such table. */
  columns(table: string): readonly string[]
  exec(sql: string): void
}

/** The table `settings` of a service: what it makes at its first start, by name. */
export class Settings {
  readonly #sql

  constructor(connection: Connection) {
    this.#sql = statements(connection, {
      find: 'SELECT value FROM settings WHERE name = ?',
      add: 'INSERT INTO settings (name, value) VALUES (?, ?)',
    })
  }

  async find(name: string): Promise<Uint8Array | undefined> {
    return (await this.#sql.find.get<{ value: Uint8Array }>(name))?.value
  }

  async add(name: string, value: Uint8Array): Promise<void> {
    await this.#sql.add.run(name, value)
  }
}

const RANDOM_BYTES = 32

/** 32 random bytes, made at the first start and kept under this name. Durable when the promise resolves. */
export function randomSetting(db: Database<{ readonly settings: Settings }>, name: string): Promise<Uint8Array> {
  return db.transaction(async ({ settings }) => {
    const found = await settings.find(name)
    if (found !== undefined) return found
    const made = randomBytes(RANDOM_BYTES)
    await settings.add(name, made)
    return made
  })
}

/**
 * Reads rows page by page until there are no more. A page is read when the one before it has been used.
 * @param name member of a row by which the rows are ordered
 * @param first value below those of all rows
 * @param read the next rows above a value
 */
export async function* pages<V, N extends string, R extends Readonly<Record<N, V>>>(
  name: N,
  first: V,
  read: (after: V) => Promise<readonly R[]>,
): AsyncGenerator<readonly R[]> {
  let page = await read(first)
  for (let last = page.at(-1); last !== undefined; last = page.at(-1)) {
    yield page
    page = await read(last[name])
  }
}
