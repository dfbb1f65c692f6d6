import { DatabaseSync, type DatabaseSyncInstance, type StatementSyncInstance } from '@photostructure/sqlite'
import { DiskReserve, isDiskFull, withReserve } from '../../common/disk-reserve.js'
import { cannotUse, stateClosed } from '../../src/state/errors.js'
import { makeFile } from '../../src/state/folder-record.js'
import { fenceIn } from '../../src/state/records/table.js'
import { EmptyKinds } from './empty-kinds.js'

/** Most writes in one transaction. Bounds the time that a commit blocks the event loop. */
const MAX_BATCH = 1000
/** Most expired rows removed along with a batch of writes. */
const MAX_PURGE = 1000
/** Longest wait for the transaction of another process, ms. */
const MAX_BUSY_MS = 10_000

interface Write {
  readonly key: string
  /** Absent: remove the row. */
  readonly value?: string
  /** Milliseconds since 1970. */
  readonly expires?: number
  /** Write only if the row has this value; undefined: only if there is no row. */
  readonly over?: { readonly expected: string | undefined }
  /** Write only if the record in the row has no higher fence. */
  readonly fence?: number
  readonly settle: (changed: boolean) => void
  readonly fail: (error: unknown) => void
}

/** Opens or creates the database file. Throws StateError DATA_FOLDER. */
export function openDatabase(file: string): DatabaseSyncInstance {
  makeFile(file)
  const reserve = new DiskReserve(file)
  try {
    // SQLite creates two files beside the database, for which a full disk has no space.
    return withReserve(reserve, () => open(file))
  } catch (error) {
    throw cannotUse(file, error)
  } finally {
    reserve.stop()
  }
}

function open(file: string): DatabaseSyncInstance {
  let opened: DatabaseSyncInstance | undefined
  try {
    const database = new DatabaseSync(file)
    opened = database
    // FULL: a commit is on the disk when it returns, also in WAL mode
    // (https://www.sqlite.org/pragma.html#pragma_synchronous).
    // The busy timeout is for other processes of the same server, of which each commit takes some milliseconds.
    database.exec(`PRAGMA busy_timeout = ${MAX_BUSY_MS}; PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;`)
    database.exec(`
      CREATE TABLE IF NOT EXISTS entry (key TEXT PRIMARY KEY, value TEXT NOT NULL, expires INTEGER) STRICT;
      CREATE INDEX IF NOT EXISTS entry_expires ON entry (expires) WHERE expires IS NOT NULL;
    `)
    return database
  } catch (error) {
    opened?.close()
    throw error
  }
}

/**
 * Rows of text by key in SQLite, with group commit: all writes of one turn of the event loop form one transaction, and
 * their promises settle after the commit. An fsync per write would cost ten times as much and block the loop as often.
 */
export class SqliteRows {
  readonly #database: DatabaseSyncInstance
  readonly #reserve: DiskReserve | undefined
  readonly #select: StatementSyncInstance
  readonly #selectMany: StatementSyncInstance
  readonly #selectPage: StatementSyncInstance
  readonly #upsert: StatementSyncInstance
  readonly #remove: StatementSyncInstance
  readonly #insertNew: StatementSyncInstance
  readonly #updateSame: StatementSyncInstance
  readonly #removeSame: StatementSyncInstance
  readonly #upsertFenced: StatementSyncInstance
  readonly #removeFenced: StatementSyncInstance
  readonly #purge: StatementSyncInstance
  #queue: Write[] = []
  #scheduled = false
  #closed = false
  /** Undefined where other processes write to the file, too. */
  readonly #empty: EmptyKinds | undefined

  /**
   * @param reserve disk space that is freed for removals when the disk is full
   * @param alone no other process writes to the file
   * @param now monotonic, ms
   */
  constructor(database: DatabaseSyncInstance, reserve?: DiskReserve, alone = false, now?: () => number) {
    this.#database = database
    this.#reserve = reserve
    this.#empty = alone ? new EmptyKinds((from, to) => this.#anyBetween(from, to), now) : undefined
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
    this.#insertNew = database.prepare('INSERT INTO entry (key, value) VALUES (?, ?) ON CONFLICT (key) DO NOTHING')
    this.#updateSame = database.prepare('UPDATE entry SET value = ? WHERE key = ? AND value = ?')
    this.#removeSame = database.prepare('DELETE FROM entry WHERE key = ? AND value = ?')
    const notLater = "coalesce(json_extract(entry.value, '$.value.fence'), 0) <= ?"
    this.#upsertFenced = database.prepare(
      `INSERT INTO entry (key, value, expires) VALUES (?, ?, ?)
       ON CONFLICT (key) DO UPDATE SET value = excluded.value, expires = excluded.expires WHERE ${notLater}`,
    )
    this.#removeFenced = database.prepare(`DELETE FROM entry WHERE key = ? AND ${notLater}`)
    this.#purge = database.prepare(
      'DELETE FROM entry WHERE rowid IN (SELECT rowid FROM entry WHERE expires <= ? LIMIT ?)',
    )
  }

  get(key: string): string | undefined {
    this.#check(key)
    if (this.#empty?.has(key)) return undefined
    const row = this.#select.get(key, Date.now()) as { value: string } | undefined
    return row?.value
  }

  /** True if it is known that there is no row whose key begins with `<kind>:`. */
  isEmpty(kind: string): boolean {
    return !this.#closed && this.#empty?.knows(kind) === true
  }

  /** In the order of `keys`. */
  getMany(keys: readonly string[]): (string | undefined)[] {
    for (const key of keys) this.#check(key)
    if (this.#empty && keys.every((key) => this.#empty?.has(key))) return keys.map(() => undefined)
    const rows = this.#selectMany.all(JSON.stringify(keys), Date.now()) as { key: string; value: string }[]
    const found = new Map(rows.map((row) => [row.key, row.value]))
    return keys.map((key) => found.get(key))
  }

  /** Up to `limit` rows with `after` < key < `before`, in byte order of the key. */
  page(after: string, before: string, limit: number): { key: string; value: string }[] {
    this.#check(after)
    return this.#selectPage.all(after, before, Date.now(), limit) as { key: string; value: string }[]
  }

  /** Resolves when the row is durable. `expires` in milliseconds since 1970. */
  async put(key: string, value: string, expires?: number): Promise<void> {
    if (value.includes('\0')) throw new TypeError('A state value must not hold NUL')
    await this.#enqueue({ key, value, ...(expires !== undefined && { expires }) })
  }

  /**
   * Writes `next`, or removes the row when `next` is undefined, if the row has the value `expected` (undefined: no
   * row). Resolves whether it did; durable then.
   */
  async swap(key: string, expected: string | undefined, next: string | undefined): Promise<boolean> {
    if (next?.includes('\0')) throw new TypeError('A state value must not hold NUL')
    return this.#enqueue({ key, ...(next !== undefined && { value: next }), over: { expected } })
  }

  /**
   * Writes `next`, or removes the row when `next` is undefined, unless the record in the row has a higher fence.
   * Resolves with that fence, or with undefined when done; durable then.
   * @param expires milliseconds since 1970
   */
  async setFenced(key: string, next: string | undefined, fence: number, expires?: number): Promise<number | undefined> {
    if (next?.includes('\0')) throw new TypeError('A state value must not hold NUL')
    // See `remove`.
    if (next === undefined && this.#queue.length === 0 && this.get(key) === undefined) return undefined
    const write = { key, ...(next !== undefined && { value: next }), ...(expires !== undefined && { expires }), fence }
    if (await this.#enqueue(write)) return undefined
    const stands = fenceIn(this.get(key))
    return stands > fence ? stands : undefined
  }

  /** Resolves when the removal is durable, with whether the row existed. */
  async remove(key: string): Promise<boolean> {
    // Most removed objects have no record, and to find that out costs less than a transaction.
    if (this.#queue.length === 0 && this.get(key) === undefined) return false
    return this.#enqueue({ key })
  }

  /** Commits the pending writes and closes the file. */
  close(): void {
    if (this.#closed) return
    while (this.#queue.length > 0) this.#commit()
    this.#closed = true
    this.#reserve?.stop()
    this.#database.close()
  }

  /** True if there is a row between the keys, expired or not. A page begins behind its first key. */
  #anyBetween(from: string, to: string): boolean {
    return this.#select.get(from, 0) !== undefined || this.#selectPage.all(from, to, 0, 1).length > 0
  }

  #enqueue(write: Omit<Write, 'settle' | 'fail'>): Promise<boolean> {
    return new Promise((settle, fail) => {
      this.#check(write.key)
      if (write.value !== undefined) this.#empty?.wrote(write.key)
      this.#queue.push({ ...write, settle, fail })
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
    const full = this.#transact(batch, this.#reserve !== undefined)
    if (full.length === 0) return
    // One by one, with a checkpoint of the log after each, so that little disk space is enough.
    this.#reserve?.release()
    for (const write of full) {
      try {
        this.#database.exec('PRAGMA wal_checkpoint(TRUNCATE)')
      } catch {
        // There may be enough space anyway.
      }
      this.#transact([write], false)
    }
  }

  /** Settles all writes of the batch, except removals that a full disk prevented if `tellsFull` asks to return them. */
  #transact(batch: readonly Write[], tellsFull: boolean): Write[] {
    const done: (() => void)[] = []
    try {
      this.#database.exec('BEGIN IMMEDIATE')
      for (const write of batch) {
        try {
          const changed = this.#apply(write)
          done.push(() => write.settle(changed))
        } catch (error) {
          // A refused row undoes only itself; a full disk or an I/O error undoes the transaction
          // (https://www.sqlite.org/lang_transaction.html).
          if (!this.#database.isTransaction || isDiskFull(error)) throw error
          done.push(() => write.fail(error))
        }
      }
      if (batch.some((write) => write.expires !== undefined)) this.#purge.run(Date.now(), MAX_PURGE)
      this.#database.exec('COMMIT')
    } catch (error) {
      this.#rollBack()
      const full = tellsFull && isDiskFull(error) ? batch.filter(({ value }) => value === undefined) : []
      for (const write of batch) if (!full.includes(write)) write.fail(error)
      return full
    }
    for (const settle of done) settle()
    if (batch.some(({ value }) => value !== undefined)) this.#reserve?.hold()
    return []
  }

  #rollBack(): void {
    try {
      if (this.#database.isTransaction) this.#database.exec('ROLLBACK')
    } catch {
      // The next BEGIN will fail too, and that error reaches the writers.
    }
  }

  #apply(write: Write): boolean {
    if (write.over) return this.#swap(write, write.over.expected)
    if (write.fence !== undefined) return this.#setFenced(write, write.fence)
    if (write.value === undefined) return Number(this.#remove.run(write.key).changes) > 0
    this.#upsert.run(write.key, write.value, write.expires ?? null)
    return true
  }

  #swap({ key, value }: Write, expected: string | undefined): boolean {
    if (expected === undefined) {
      if (value === undefined) return this.#select.get(key, Date.now()) === undefined
      return Number(this.#insertNew.run(key, value).changes) > 0
    }
    const done = value === undefined ? this.#removeSame.run(key, expected) : this.#updateSame.run(value, key, expected)
    return Number(done.changes) > 0
  }

  #setFenced({ key, value, expires }: Write, fence: number): boolean {
    const done =
      value === undefined
        ? this.#removeFenced.run(key, fence)
        : this.#upsertFenced.run(key, value, expires ?? null, fence)
    return Number(done.changes) > 0
  }

  /** This SQLite binding truncates text at NUL, which would merge two keys. */
  #check(key: string): void {
    if (this.#closed) throw stateClosed()
    if (key.includes('\0')) throw new TypeError('A state key must not hold NUL')
  }
}
