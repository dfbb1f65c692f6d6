import { DatabaseSync, type DatabaseSyncInstance } from '@photostructure/sqlite'

export type Database = DatabaseSyncInstance

/**
 * Opens (and creates) a database that survives `kill -9` and power failure: what a committed transaction wrote is on the disk
 * (https://www.sqlite.org/pragma.html#pragma_synchronous). Takes no lock for its lifetime: see `lockFolder`. With prepared statements about, SQLite holds a
 * closed connection's locks until they are collected as garbage, and a restart in the same process would meet them.
 * @param migrate brings what an earlier version left into the form that `schema` expects
 */
export function openDatabase(file: string, schema: string, migrate?: (db: Database) => void): Database {
  const db = new DatabaseSync(file)
  try {
    db.exec(`
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

/** The database as it was at one moment. */
export interface Snapshot {
  readonly db: Database
  close(): void
}

/** The state that was committed last, however long it is read and whatever is written meanwhile. To be closed soon: until then the write-ahead log only grows. */
export function openSnapshot(file: string): Snapshot {
  const db = new DatabaseSync(file, { readOnly: true })
  try {
    db.exec('BEGIN')
    // The moment is that of the first read.
    db.prepare('SELECT 1 FROM sqlite_schema').get()
  } catch (error) {
    db.close()
    throw error
  }
  return {
    db,
    close: () => {
      // Closing alone would not end the transaction before the statements are collected as garbage.
      if (db.isTransaction) db.exec('ROLLBACK')
      db.close()
    },
  }
}

/** Jobs in one transaction at most: bounds how long the event loop stands still. */
const MAX_BATCH = 256

interface Job {
  readonly work: () => unknown
  readonly resolve: (value: unknown) => void
  readonly reject: (error: unknown) => void
  outcome?: { readonly value: unknown } | { readonly error: unknown }
}

/**
 * Group commit: all the jobs that came in during one turn of the event loop share a transaction and its fsync. A job's promise resolves after
 * the commit, so what it stands for is durable; a job that throws undoes its own writes and nobody else's.
 */
export class Writer {
  readonly #db: Database
  #queue: Job[] = []
  #scheduled = false
  #closed = false

  constructor(db: Database) {
    this.#db = db
  }

  /** `work` runs synchronously inside the transaction and must be short. */
  run<T>(work: () => T): Promise<T> {
    if (this.#closed) return Promise.reject(new Error('The database is closed.'))
    return new Promise<T>((resolve, reject) => {
      this.#queue.push({ work, resolve: resolve as (value: unknown) => void, reject })
      this.#schedule()
    })
  }

  /** Commits what is waiting; refuses what comes later. */
  close(): void {
    this.#closed = true
    while (this.#queue.length > 0) this.#commit(this.#queue.splice(0, MAX_BATCH))
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

  #commit(batch: readonly Job[]): void {
    try {
      this.#db.exec('BEGIN IMMEDIATE')
      for (const job of batch) this.#attempt(job)
      this.#db.exec('COMMIT')
    } catch (error) {
      if (this.#db.isTransaction) this.#db.exec('ROLLBACK')
      for (const job of batch) job.reject(error)
      return
    }
    for (const job of batch) {
      if (job.outcome !== undefined && 'value' in job.outcome) job.resolve(job.outcome.value)
      else job.reject(job.outcome?.error)
    }
  }

  #attempt(job: Job): void {
    this.#db.exec('SAVEPOINT job')
    try {
      job.outcome = { value: job.work() }
    } catch (error) {
      // SQLite itself ends the whole transaction on some errors, such as a full disk: then there is nothing to go on with.
      if (!this.#db.isTransaction) throw error
      this.#db.exec('ROLLBACK TO job')
      job.outcome = { error }
    }
    this.#db.exec('RELEASE job')
  }
}

/** True when SQLite could not write for want of space. */
export function isDiskFull(error: unknown): boolean {
  const SQLITE_FULL = 13
  return (
    error instanceof Error &&
    (('errcode' in error && error.errcode === SQLITE_FULL) || ('code' in error && error.code === 'ENOSPC'))
  )
}
