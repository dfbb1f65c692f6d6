import { DatabaseSync, type DatabaseSyncInstance, type StatementSyncInstance } from '@photostructure/sqlite'
import { reasonOf, StateError } from './errors.js'
import { makeFile } from './folders.js'

/** Writes in one transaction at most: bounds how long a commit holds up the event loop. */
const MAX_BATCH = 1000
/** Expired rows removed along with a batch of writes at most. */
const MAX_PURGE = 1000

interface Write {
  readonly key: string
  /** Absent: remove the row. */
  readonly value?: string
  /** Milliseconds since 1970. */
  readonly expires?: number
  readonly settle: (changed: boolean) => void
  readonly fail: (error: unknown) => void
}

/** Opens or makes the database file. Throws StateError DATA_FOLDER. */
export function openDatabase(file: string): DatabaseSyncInstance {
  makeFile(file)
  try {
    const database = new DatabaseSync(file)
    // FULL: the commit has reached the disk when it returns, in WAL too (https://www.sqlite.org/pragma.html#pragma_synchronous).
    database.exec('PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;')
    database.exec(`
      CREATE TABLE IF NOT EXISTS entry (key TEXT PRIMARY KEY, value TEXT NOT NULL, expires INTEGER) STRICT;
      CREATE INDEX IF NOT EXISTS entry_expires ON entry (expires) WHERE expires IS NOT NULL;
    `)
    return database
  } catch (error) {
    throw new StateError('DATA_FOLDER', `The database ${file} cannot be opened: ${reasonOf(error)}`, error)
  }
}

/**
 * Rows of text by key in SQLite, written by group commit: what is asked for within one turn of the event loop goes into one transaction, and each
 * promise settles after the commit. An fsync per write would cost ten times as much and stall the loop as often.
 */
export class SqliteRows {
  readonly #database: DatabaseSyncInstance
  readonly #select: StatementSyncInstance
  readonly #selectMany: StatementSyncInstance
  readonly #selectPage: StatementSyncInstance
  readonly #upsert: StatementSyncInstance
  readonly #remove: StatementSyncInstance
  readonly #purge: StatementSyncInstance
  #queue: Write[] = []
  #scheduled = false
  #closed = false
  #commits = 0

  constructor(database: DatabaseSyncInstance) {
    this.#database = database
    const live = '(expires IS NULL OR expires > ?)'
    this.#select = database.prepare(`SELECT value FROM entry WHERE key = ? AND ${live}`)
    this.#selectMany = database.prepare(
      `SELECT key, value FROM entry WHERE key IN (SELECT value FROM json_each(?)) AND ${live}`,
    )
    this.#selectPage = database.prepare(
      `SELECT key, value FROM entry WHERE key > ? AND key < ? AND ${live} ORDER BY key LIMIT ?`,
    )
    this.#upsert = database.prepare(
      `INSERT INTO entry (key, value, expires) VALUES (?, ?, ?)
       ON CONFLICT (key) DO UPDATE SET value = excluded.value, expires = excluded.expires`,
    )
    this.#remove = database.prepare('DELETE FROM entry WHERE key = ?')
    this.#purge = database.prepare(
      'DELETE FROM entry WHERE rowid IN (SELECT rowid FROM entry WHERE expires <= ? LIMIT ?)',
    )
  }

  /** Transactions committed so far. */
  get commits(): number {
    return this.#commits
  }

  get(key: string): string | undefined {
    this.#check(key)
    const row = this.#select.get(key, Date.now()) as { value: string } | undefined
    return row?.value
  }

  /** In the order of `keys`. */
  getMany(keys: readonly string[]): (string | undefined)[] {
    for (const key of keys) this.#check(key)
    const rows = this.#selectMany.all(JSON.stringify(keys), Date.now()) as { key: string; value: string }[]
    const found = new Map(rows.map((row) => [row.key, row.value]))
    return keys.map((key) => found.get(key))
  }

  /** Up to `limit` rows with `after` < key < `before`, in order of key bytes. */
  page(after: string, before: string, limit: number): { key: string; value: string }[] {
    this.#check(after)
    return this.#selectPage.all(after, before, Date.now(), limit) as { key: string; value: string }[]
  }

  /** Resolves when the row is durable. `expires` in ms since 1970. */
  async put(key: string, value: string, expires?: number): Promise<void> {
    if (value.includes('\0')) throw new TypeError('A state value must not hold NUL')
    await this.#enqueue(key, value, expires)
  }

  /** Resolves when the removal is durable, with whether there was such a row. */
  remove(key: string): Promise<boolean> {
    return this.#enqueue(key)
  }

  /** Commits what is still waiting and closes the file. */
  close(): void {
    if (this.#closed) return
    while (this.#queue.length > 0) this.#commit()
    this.#closed = true
    this.#database.close()
  }

  #enqueue(key: string, value?: string, expires?: number): Promise<boolean> {
    return new Promise((settle, fail) => {
      this.#check(key)
      this.#queue.push({
        key,
        ...(value !== undefined && { value }),
        ...(expires !== undefined && { expires }),
        settle,
        fail,
      })
      this.#schedule()
    })
  }

  #schedule(): void {
    if (this.#scheduled) return
    this.#scheduled = true
    setImmediate(() => {
      this.#scheduled = false
      if (this.#queue.length > 0) this.#commit()
      if (this.#queue.length > 0) this.#schedule()
    })
  }

  #commit(): void {
    const batch = this.#queue.splice(0, MAX_BATCH)
    const done: (() => void)[] = []
    try {
      this.#database.exec('BEGIN IMMEDIATE')
      for (const write of batch) {
        try {
          const changed = this.#apply(write)
          done.push(() => write.settle(changed))
        } catch (error) {
          // A refused row undoes itself alone; a full disk or an I/O error has undone the transaction (https://www.sqlite.org/lang_transaction.html).
          if (!this.#database.isTransaction) throw error
          done.push(() => write.fail(error))
        }
      }
      if (batch.some((write) => write.expires !== undefined)) this.#purge.run(Date.now(), MAX_PURGE)
      this.#database.exec('COMMIT')
      this.#commits++
    } catch (error) {
      for (const write of batch) write.fail(error)
      this.#rollBack()
      return
    }
    for (const settle of done) settle()
  }

  #rollBack(): void {
    try {
      if (this.#database.isTransaction) this.#database.exec('ROLLBACK')
    } catch {
      // Then the next BEGIN fails as well, and those who wrote are told.
    }
  }

  #apply(write: Write): boolean {
    if (write.value === undefined) return Number(this.#remove.run(write.key).changes) > 0
    this.#upsert.run(write.key, write.value, write.expires ?? null)
    return true
  }

  /** This SQLite binding cuts text at NUL, which would make two keys one. */
  #check(key: string): void {
    if (this.#closed) throw new Error('The state database is closed')
    if (key.includes('\0')) throw new TypeError('A state key must not hold NUL')
  }
}
