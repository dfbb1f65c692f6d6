import { DatabaseSync, type DatabaseSyncInstance } from '@photostructure/sqlite'
import { DiskReserve, isDiskFull, withReserve } from '../common/disk-reserve.js'
import { makePrivateDatabase } from '../common/files/private-file.js'
import { explained } from './folder-lock.js'

export type Database = DatabaseSyncInstance

/** Longest wait for a transaction of another process, ms. */
export const BUSY_MS = 5000

/**
 * Opens or creates a database that survives `kill -9` and power failure: committed transactions are on the disk
 * (https://www.sqlite.org/pragma.html#pragma_synchronous). It holds no lock for its lifetime; see `lockFolder`. While
 * prepared statements exist, SQLite keeps the locks of a closed connection until they are garbage collected, and a
 * restart in the same process would meet them. Throws DataFolderError when the disk fails.
 * @param migrate converts the schema of an earlier version to what `schema` expects
 */
export function openDatabase(file: string, schema: string, migrate?: (db: Database) => void): Database {
  const reserve = new DiskReserve(file)
  try {
    // SQLite creates two files beside the database, which do not fit on a full disk.
    return withReserve(reserve, () => open(file, schema, migrate))
  } catch (error) {
    throw explained(file, error)
  } finally {
    reserve.stop()
  }
}

function open(file: string, schema: string, migrate?: (db: Database) => void): Database {
  makePrivateDatabase(file)
  const db = new DatabaseSync(file)
  try {
    db.exec(`
      PRAGMA busy_timeout = ${BUSY_MS};
      PRAGMA journal_mode = WAL;
      PRAGMA synchronous = FULL;
      PRAGMA foreign_keys = ON;
      PRAGMA cache_size = -32768;
    `)
    migrate?.(db)
    db.exec(schema)
    return db
  } catch (error) {
    db.close()
    throw error
  }
}

type Statement = ReturnType<Database['prepare']>

/** Prepares the statements of a table, by name. */
export function statements<N extends string>(db: Database, sql: Readonly<Record<N, string>>): Record<N, Statement> {
  const names = Object.keys(sql) as N[]
  return Object.fromEntries(names.map((name) => [name, db.prepare(sql[name])])) as Record<N, Statement>
}

/**
 * Reads rows page by page until there are no more. A page is read when the one before it has been used.
 * @param name member of a row by which the rows are ordered
 * @param first value below those of all rows
 * @param read the next rows above a value
 */
export function* pages<V, N extends string, R extends Readonly<Record<N, V>>>(
  name: N,
  first: V,
  read: (after: V) => readonly R[],
): Generator<readonly R[]> {
  let page = read(first)
  for (let last = page.at(-1); last !== undefined; last = page.at(-1)) {
    yield page
    page = read(last[name])
  }
}

/** The database at one moment. */
export interface Snapshot {
  readonly db: Database
  close(): void
}

/**
 * Opens the last committed state. It stays the same while it is read, whatever is written meanwhile. Close it soon: the
 * write-ahead log cannot be truncated until then.
 */
export function openSnapshot(file: string): Snapshot {
  const db = new DatabaseSync(file, { readOnly: true })
  try {
    db.exec('BEGIN')
    // The first read determines the moment.
    db.prepare('SELECT 1 FROM sqlite_schema').get()
  } catch (error) {
    db.close()
    throw error
  }
  return {
    db,
    close: () => {
      // Without it, the transaction would last until the statements are garbage collected.
      if (db.isTransaction) db.exec('ROLLBACK')
      db.close()
    },
  }
}

/** Most jobs per transaction; bounds how long a commit blocks the event loop. */
const MAX_BATCH = 256

interface Job {
  readonly work: () => unknown
  readonly mayUseReserve: boolean
  readonly resolve: (value: unknown) => void
  readonly reject: (error: unknown) => void
  outcome?: { readonly value: unknown } | { readonly error: unknown }
}

/**
 * Group commit: all jobs submitted during one turn of the event loop share a transaction and its fsync. The promise of
 * a job resolves after the commit, so its writes are durable. A job that throws rolls back its own writes only.
 */
export class Writer {
  readonly #db: Database
  readonly #reserve: DiskReserve | undefined
  #queue: Job[] = []
  #scheduled = false
  #closed = false

  /** @param reserve disk space to release on a full disk, for jobs that may use it */
  constructor(db: Database, reserve?: DiskReserve) {
    this.#db = db
    this.#reserve = reserve
  }

  /** Throws an ENOSPC error unless the reserve is held. Call it before an upload is received. */
  requireRoom(): void {
    if (this.#reserve?.hold() === false) {
      throw Object.assign(new Error('The disk is full: the remaining space is reserved for removals.'), {
        code: 'ENOSPC',
      })
    }
  }

  /**
   * Runs `work` synchronously inside the transaction; it must be short. It may run twice, and the first run is then
   * rolled back.
   * @param mayUseReserve false for work that takes more space than it frees
   */
  run<T>(work: () => T, { mayUseReserve = true } = {}): Promise<T> {
    if (this.#closed) return Promise.reject(new Error('The database is closed.'))
    return new Promise<T>((resolve, reject) => {
      this.#queue.push({ work, mayUseReserve, resolve: resolve as (value: unknown) => void, reject })
      this.#schedule()
    })
  }

  /** Commits the waiting jobs; later ones are rejected. */
  close(): void {
    this.#closed = true
    while (this.#queue.length > 0) this.#commit(this.#queue.splice(0, MAX_BATCH))
    this.#reserve?.stop()
  }

  #schedule(): void {
    if (this.#scheduled) return
    this.#scheduled = true
    setImmediate(() => {
      this.#scheduled = false
      if (this.#queue.length === 0) return
      this.#commit(this.#queue.splice(0, MAX_BATCH))
      if (this.#queue.length > 0) this.#schedule()
    })
  }

  #commit(batch: readonly Job[], again = this.#reserve !== undefined): void {
    try {
      this.#db.exec('BEGIN IMMEDIATE')
      for (const job of batch) this.#attempt(job)
      this.#db.exec('COMMIT')
    } catch (error) {
      if (this.#db.isTransaction) this.#db.exec('ROLLBACK')
      for (const job of batch) job.outcome = { error }
    }
    const retried = again ? batch.filter(needsRoom) : []
    for (const job of batch) {
      if (retried.includes(job)) continue
      if (job.outcome !== undefined && 'value' in job.outcome) job.resolve(job.outcome.value)
      else job.reject(job.outcome?.error)
    }
    if (retried.length > 0) this.#commitInReserve(retried)
  }

  /** Commits the jobs one by one, so that little space is enough, and checkpoints the log of each before the next. */
  #commitInReserve(jobs: readonly Job[]): void {
    this.#reserve?.release()
    for (const job of jobs) {
      this.#truncateLog()
      this.#commit([job], false)
    }
  }

  /** Does not wait for readers: a reader in this thread could not end meanwhile. */
  #truncateLog(): void {
    this.#db.exec('PRAGMA busy_timeout = 0')
    try {
      this.#db.exec('PRAGMA wal_checkpoint(TRUNCATE)')
    } catch {
      // A reader holds the log: there may be enough space nevertheless.
    } finally {
      this.#db.exec(`PRAGMA busy_timeout = ${BUSY_MS}`)
    }
  }

  #attempt(job: Job): void {
    this.#db.exec('SAVEPOINT job')
    try {
      job.outcome = { value: job.work() }
    } catch (error) {
      // SQLite itself rolls back the whole transaction on some errors, such as a full disk: stop here then.
      if (!this.#db.isTransaction) throw error
      this.#db.exec('ROLLBACK TO job')
      job.outcome = { error }
    }
    this.#db.exec('RELEASE job')
  }
}

function needsRoom({ mayUseReserve, outcome }: Job): boolean {
  return mayUseReserve && outcome !== undefined && 'error' in outcome && isDiskFull(outcome.error)
}

/**
 * Brings a schema up to date, or makes it: one step per version, of which the database remembers the number. A released
 * step never changes; a new version appends one. A crash leaves the version before a step or after it. Throws
 * RangeError when a later version of this program wrote the database.
 * @param owner for the message, such as `the task platform`
 */
export function applySteps(db: Database, steps: readonly string[], owner: string): void {
  const version = db.prepare('PRAGMA user_version').get().user_version as number
  if (version > steps.length) {
    throw new RangeError(`A later version of dealgate has written the data of ${owner}: start that version.`)
  }
  for (const [n, step] of steps.entries()) {
    if (n >= version) db.exec(`BEGIN IMMEDIATE; ${step}; PRAGMA user_version = ${n + 1}; COMMIT;`)
  }
}

/** Runs `change` in one transaction. Another process may have made the change: `change` looks first. */
export function inTransaction<T>(db: Database, change: () => T): T {
  db.exec('BEGIN IMMEDIATE')
  try {
    const result = change()
    db.exec('COMMIT')
    return result
  } catch (error) {
    if (db.isTransaction) db.exec('ROLLBACK')
    throw error
  }
}
