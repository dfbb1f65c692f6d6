import { closeSync, existsSync, fsyncSync, openSync } from 'node:fs'
import { DatabaseSync, type DatabaseSyncInstance } from '@photostructure/sqlite'
import { DiskReserve, withReserve } from '../../common/disk-reserve.js'
import { makePrivateDatabase } from '../../common/files/private-file.js'
import { explained } from '../folder-lock.js'
import { COPYING, type EarlyDatabase, incompleteError, type Schema } from './database.js'

/** Longest wait for a transaction of another process, ms. */
export const MAX_BUSY_MS = 5000

/**
 * Committed transactions survive `kill -9` and power failure: they are on the disk
 * (https://www.sqlite.org/pragma.html#pragma_synchronous). The connection holds no lock for its lifetime; see
 * `lockFolder`. While prepared statements exist, SQLite keeps the locks of a closed connection until they are garbage
 * collected, and a restart in the same process would meet them.
 */
export function openWriter(file: string, schema: Schema<unknown>): DatabaseSyncInstance {
  const reserve = new DiskReserve(file)
  try {
    // SQLite creates two files beside the database, which do not fit on a full disk.
    return withReserve(reserve, () => open(file, schema))
  } catch (error) {
    throw explained(file, error)
  } finally {
    reserve.stop()
  }
}

function open(file: string, schema: Schema<unknown>): DatabaseSyncInstance {
  makePrivateDatabase(file)
  syncLog(file)
  const db = new DatabaseSync(file)
  try {
    db.exec(`
      PRAGMA busy_timeout = ${MAX_BUSY_MS};
      PRAGMA journal_mode = WAL;
      PRAGMA synchronous = FULL;
      PRAGMA foreign_keys = ON;
      PRAGMA cache_size = -32768;
    `)
    if (!schema.filling && isIncomplete(db)) throw incompleteError(schema)
    adapt(db, schema)
    applySteps(db, schema)
    return db
  } catch (error) {
    db.close()
    throw error
  }
}

/**
 * A process that was killed between the end of a commit and its sync has left a log with a commit that the disk may not
 * have. SQLite recovers and shows it without a sync of its own, and its answers must not outlast it.
 */
function syncLog(file: string): void {
  const log = `${file}-wal`
  if (!existsSync(log)) return
  const fd = openSync(log, 'r+')
  try {
    fsyncSync(fd)
  } finally {
    closeSync(fd)
  }
}

/** A crash leaves the version before a step or after it. */
function applySteps(db: DatabaseSyncInstance, { steps, owner }: Schema<unknown>): void {
  const version = db.prepare('PRAGMA user_version').get().user_version as number
  if (version > steps.length) {
    throw new RangeError(`A later version of dealgate has written the data of ${owner}: start that version.`)
  }
  for (const [n, step] of steps.entries()) {
    if (n >= version) db.exec(`BEGIN IMMEDIATE; ${step}; PRAGMA user_version = ${n + 1}; COMMIT;`)
  }
}

/** Another process may have taken the first step meanwhile. */
function adapt(db: DatabaseSyncInstance, schema: Pick<Schema<unknown>, 'adapt'>): void {
  if (schema.adapt === undefined) return
  const early: EarlyDatabase = {
    columns: (table) =>
      db
        .prepare('SELECT name FROM pragma_table_info(?)')
        .all(table)
        .map(({ name }) => String(name)),
    exec: (sql) => db.exec(sql),
  }
  db.exec('BEGIN IMMEDIATE')
  try {
    if (db.prepare('PRAGMA user_version').get().user_version === 0) schema.adapt(early)
    db.exec('COMMIT')
  } catch (error) {
    if (db.isTransaction) db.exec('ROLLBACK')
    throw error
  }
}

function isIncomplete(db: DatabaseSyncInstance): boolean {
  return db.prepare('SELECT 1 FROM sqlite_schema WHERE name = ?').get(COPYING) !== undefined
}

/** Most memory for pages of a database, KiB. */
const CACHE_KIB = 32_768

/** A connection for statements that change nothing. */
export function openReader(file: string, cacheKib = CACHE_KIB): DatabaseSyncInstance {
  const reader = new DatabaseSync(file, { readOnly: true })
  reader.exec(`PRAGMA busy_timeout = ${MAX_BUSY_MS}; PRAGMA cache_size = -${cacheKib};`)
  return reader
}

/** The database of a file at one moment. */
export interface FileSnapshot {
  readonly db: DatabaseSyncInstance
  close(): void
}

/**
 * Opens the last committed state. It stays the same while it is read, whatever is written meanwhile. Close it soon: the
 * write-ahead log cannot be truncated until then.
 */
export function openSnapshot(file: string): FileSnapshot {
  const db = openReader(file)
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
      // A transaction that is not rolled back would last until the statements are garbage collected.
      if (db.isTransaction) db.exec('ROLLBACK')
      db.close()
    },
  }
}
