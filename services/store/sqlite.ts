import type { DatabaseSyncInstance } from '@photostructure/sqlite'
import { DiskReserve, isDiskFull } from '../../common/disk-reserve.js'
import type { Connection, Database, Lease, Schema, Snapshot } from './database.js'
import { Changes } from './kept-rows.js'
import { soleLease } from './lease.js'
import { MAX_BUSY_MS, openReader, openSnapshot, openWriter } from './sqlite-files.js'
import { connectionOf } from './sqlite-statements.js'

/** Most transactions per commit; bounds how long a commit blocks the event loop. */
const MAX_BATCH = 256

/**
 * Opens or creates a database in a file, and brings its schema up to date. Throws DataFolderError when the disk fails,
 * and RangeError when a later version of this program wrote the database.
 * @param keepRoom true to keep disk space, to be released on a full disk for transactions that may use it
 */
export function openSqlite<T>(file: string, schema: Schema<T>, keepRoom = false): Database<T> {
  const writer = openWriter(file, schema)
  // The writer may have needed what an earlier process has kept.
  const reserve = keepRoom ? new DiskReserve(file) : undefined
  try {
    const db = new SqliteDatabase(writer, file, schema, reserve)
    reserve?.hold()
    return db
  } catch (error) {
    writer.close()
    throw error
  }
}

/** Longest wait for a statement of a reader elsewhere, which holds the log while it runs, ms. */
const MAX_READ_MS = 20

/** Opens a database that stays as it is. */
export function readSqlite(file: string): { readonly connection: Connection; close(): void } {
  const reader = openReader(file)
  return { connection: connectionOf(reader), close: () => reader.close() }
}

/** A transaction that waits for its commit. */
interface Job {
  readonly work: () => Promise<unknown>
  readonly takesRoom: boolean
  readonly resolve: (value: unknown) => void
  readonly reject: (error: unknown) => void
  outcome?: { readonly value: unknown } | { readonly error: unknown }
}

/**
 * Two connections: one for transactions, and one for all other statements, which sees nothing that is not committed.
 *
 * Group commit: all transactions of one turn of the event loop share a commit and its fsync. One that throws rolls
 * back its own writes only: most throw before they have written anything; after one that has, the batch is rolled
 * back, and runs again with a savepoint around each transaction. Statements are synchronous: their promises are
 * fulfilled already, so that a batch from BEGIN to COMMIT takes one turn, and nothing else of this process comes
 * between.
 */
export class SqliteDatabase<T> implements Database<T> {
  readonly read: T
  readonly shared = false
  readonly #writer: DatabaseSyncInstance
  readonly #reader: DatabaseSyncInstance
  readonly #changes: Changes
  readonly #file: string
  readonly #schema: Pick<Schema<T>, 'tables'>
  readonly #tables: T
  readonly #reserve: DiskReserve | undefined
  #queue: Job[] = []
  #scheduled = false
  #inTransaction = false
  /** The present transaction of a batch has changed something. */
  #hasWritten = false
  #closed: Promise<void> | undefined
  #stopped: Error | undefined
  #idle: (() => void) | undefined

  constructor(writer: DatabaseSyncInstance, file: string, schema: Pick<Schema<T>, 'tables'>, reserve?: DiskReserve) {
    this.#writer = writer
    this.#reserve = reserve
    this.#file = file
    this.#reader = openReader(file)
    this.#schema = schema
    this.#changes = new Changes(this.#reader.prepare('PRAGMA data_version'))
    this.read = schema.tables(connectionOf(this.#reader, undefined, this.#changes))
    const mustBeOpen = (reads: boolean) => {
      if (!this.#inTransaction) throw new Error('The transaction of this statement has ended.')
      if (!reads) this.#hasWritten = true
    }
    this.#tables = schema.tables(connectionOf(writer, mustBeOpen))
  }

  async snapshot(): Promise<Snapshot<T>> {
    const { db, close } = openSnapshot(this.#file)
    return { read: this.#schema.tables(connectionOf(db)), close: async () => close() }
  }

  requireRoom(): void {
    if (this.#reserve?.hold() === false) {
      throw Object.assign(new Error('The disk is full: the remaining space is reserved for removals.'), {
        code: 'ENOSPC',
      })
    }
  }

  lease(): Lease<T> {
    return soleLease(this)
  }

  transaction<R>(work: (tables: T) => Promise<R>, { takesRoom = false } = {}): Promise<R> {
    if (this.#closed !== undefined) return Promise.reject(new Error('The database is closed.'))
    if (this.#stopped !== undefined) return Promise.reject(this.#stopped)
    return new Promise<R>((resolve, reject) => {
      this.#queue.push({
        work: () => work(this.#tables),
        takesRoom,
        resolve: resolve as (value: unknown) => void,
        reject,
      })
      this.#schedule()
    })
  }

  close(): Promise<void> {
    this.#closed ??= new Promise<void>((resolve) => {
      if (this.#scheduled) this.#idle = resolve
      else resolve()
    }).then(() => {
      // The next start may find a full disk.
      this.#reserve?.hold(true)
      this.#reserve?.stop()
      this.#reader.close()
      // SQLite itself does so when the statements are garbage collected, which may be never.
      this.#truncateLog()
      this.#writer.close()
    })
    return this.#closed
  }

  #schedule(): void {
    if (this.#scheduled) return
    this.#scheduled = true
    setImmediate(async () => {
      const batch = this.#queue.splice(0, MAX_BATCH)
      try {
        await this.#commit(batch)
      } catch (error) {
        for (const { reject } of batch) reject(error)
      }
      this.#scheduled = false
      if (this.#queue.length > 0) this.#schedule()
      else this.#idle?.()
    })
  }

  /**
   * Commits a batch and announces the outcomes. What does not fit on a full disk, and may use the reserve, is committed
   * again with it.
   */
  async #commit(batch: readonly Job[], again = this.#reserve !== undefined): Promise<void> {
    await this.#runAll(batch)
    const retried = again ? batch.filter(needsRoom) : []
    for (const job of batch) if (!retried.includes(job)) announce(job)
    if (retried.length > 0) await this.#commitInReserve(retried)
  }

  /** Runs the jobs in one transaction, which is on the disk when this resolves: each job has its outcome then. */
  async #runAll(batch: readonly Job[], apart = false): Promise<void> {
    const turn = endOfTurn()
    let mustBeApart = false
    try {
      this.#writer.exec('BEGIN IMMEDIATE')
      this.#inTransaction = true
      for (const job of batch) await (apart ? this.#attempt(job, turn.ended) : this.#run(job, turn.ended))
      this.#writer.exec('COMMIT')
    } catch (error) {
      // SQLite itself rolls back the whole transaction on some errors, such as a full disk.
      const isWhole = this.#writer.isTransaction
      if (isWhole) this.#writer.exec('ROLLBACK')
      mustBeApart = isWhole && error instanceof Unfinished && batch.length > 1
      for (const job of batch) job.outcome = { error: error instanceof Unfinished ? error.cause : error }
    } finally {
      this.#changes.mayHaveChanged()
      this.#inTransaction = false
      turn.cancel()
    }
    if (mustBeApart) await this.#runAll(batch, true)
  }

  /** Runs one job. Throws Unfinished for one that has thrown after it had written something. */
  async #run(job: Job, ended: Promise<never>): Promise<void> {
    this.#hasWritten = false
    try {
      job.outcome = { value: await Promise.race([job.work(), ended]) }
    } catch (error) {
      this.#mayGoOn(error)
      if (this.#hasWritten) throw new Unfinished(error)
      job.outcome = { error }
    }
  }

  /** Throws the error again where no further job may run. */
  #mayGoOn(error: unknown): void {
    // What such work does later could be committed with that of others.
    if (error instanceof LateWorkError) this.#stopped = error
    if (this.#stopped !== undefined || !this.#writer.isTransaction) throw error
  }

  /** Commits the jobs one by one, so that little space is enough, and checkpoints the log of each before the next. */
  async #commitInReserve(jobs: readonly Job[]): Promise<void> {
    this.#reserve?.release()
    for (const job of jobs) {
      this.#truncateLog()
      await this.#commit([job], false)
    }
  }

  /** Waits for readers of other threads and processes alone: a reader in this thread could not end meanwhile. */
  #truncateLog(): void {
    this.#writer.exec(`PRAGMA busy_timeout = ${MAX_READ_MS}`)
    try {
      this.#writer.exec('PRAGMA wal_checkpoint(TRUNCATE)')
    } catch {
      // A reader holds the log: there may be enough space nevertheless.
    } finally {
      this.#writer.exec(`PRAGMA busy_timeout = ${MAX_BUSY_MS}`)
    }
  }

  /** Runs one job; one that throws leaves nothing in the transaction of the others. */
  async #attempt(job: Job, ended: Promise<never>): Promise<void> {
    this.#writer.exec('SAVEPOINT job')
    try {
      job.outcome = { value: await Promise.race([job.work(), ended]) }
    } catch (error) {
      this.#mayGoOn(error)
      this.#writer.exec('ROLLBACK TO job')
      job.outcome = { error }
    }
    this.#writer.exec('RELEASE job')
  }
}

function announce({ outcome, resolve, reject }: Job): void {
  if (outcome !== undefined && 'value' in outcome) resolve(outcome.value)
  else reject(outcome?.error)
}

function needsRoom({ takesRoom, outcome }: Job): boolean {
  return !takesRoom && outcome !== undefined && 'error' in outcome && isDiskFull(outcome.error)
}

/** A transaction of a batch has written something, and thrown the cause. */
class Unfinished extends Error {
  override readonly name = 'Unfinished'

  constructor(cause: unknown) {
    super('A transaction has written something, and thrown.', { cause })
  }
}

/** A mistake in this program: the database takes no further transactions. */
class LateWorkError extends Error {
  override readonly name = 'LateWorkError'
}

function endOfTurn(): { readonly ended: Promise<never>; cancel(): void } {
  let timer: NodeJS.Immediate | undefined
  const ended = new Promise<never>((_, reject) => {
    timer = setImmediate(() => reject(new LateWorkError('A transaction waits for something else than its statements.')))
  })
  ended.catch(() => {})
  return { ended, cancel: () => clearImmediate(timer) }
}
