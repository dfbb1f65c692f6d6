import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { backup, type DatabaseSyncInstance as Database, DatabaseSync } from '@photostructure/sqlite'
import { type FileSnapshot, openSnapshot } from './store/sqlite-files.js'

/** Longest wait for the lock of one database while others are held, ms: a server waits for those for 5 s. */
const MAX_BUSY_MS = 250
const PAUSE_MS = 20

/** Longest time in which all databases must be free at once, ms. */
const MAX_WAIT_MS = 60_000

interface Frozen<T> {
  /** Snapshots by file. Each stays the same until it is closed, whatever the servers write. */
  readonly snapshots: ReadonlyMap<string, FileSnapshot>
  readonly taken: T
  /** Time for which writers had to wait, ms. */
  readonly pausedMs: number
}

/**
 * Opens snapshots of several databases at one moment, at which nothing is written to any of them. Servers go on
 * reading; their writes wait meanwhile.
 * @param take runs at that moment, synchronously: whatever files the databases name exist then
 * @throws Error when the databases are not free at once within a minute
 */
export async function freeze<T>(
  files: readonly string[],
  take: (snapshots: ReadonlyMap<string, FileSnapshot>) => T,
): Promise<Frozen<T>> {
  const locks: Database[] = []
  try {
    for (const file of files) locks.push(openLock(file))
    const late = performance.now() + MAX_WAIT_MS
    for (;;) {
      const begun = performance.now()
      if (locks.every(lockNow)) {
        const snapshots = new Map<string, FileSnapshot>()
        try {
          for (const file of files) snapshots.set(file, openSnapshot(file))
          const taken = take(snapshots)
          return { snapshots, taken, pausedMs: performance.now() - begun }
        } catch (error) {
          for (const snapshot of snapshots.values()) snapshot.close()
          throw error
        }
      }
      if (performance.now() > late) throw new Error('The databases are busy: nothing could be read at one moment.')
      for (const lock of locks) release(lock)
      await sleep(PAUSE_MS * (1 + Math.random()))
    }
  } finally {
    for (const lock of locks) {
      release(lock)
      lock.close()
    }
  }
}

/**
 * Writes a snapshot to a new file, which is a database without a write-ahead log.
 * @throws Error when the copy is damaged
 */
export async function copySnapshot({ db }: FileSnapshot, file: string): Promise<void> {
  await backup(db, file, { rate: 1000 })
  const copy = new DatabaseSync(file)
  try {
    copy.exec('PRAGMA journal_mode = DELETE')
    const found = copy.prepare('PRAGMA quick_check(1)').get() as { quick_check: string }
    if (found.quick_check !== 'ok') throw new Error(`The copy ${file} is damaged: ${found.quick_check}`)
  } finally {
    copy.close()
  }
}

function openLock(file: string): Database {
  const db = new DatabaseSync(file)
  db.exec(`PRAGMA busy_timeout = ${MAX_BUSY_MS}`)
  return db
}

/** No statement is prepared, so that closing the connection releases all its locks. */
function lockNow(db: Database): boolean {
  try {
    db.exec('BEGIN IMMEDIATE')
    return true
  } catch (error) {
    if (error instanceof Error && 'errcode' in error && (Number(error.errcode) & 0xff) === 5) return false
    throw error
  }
}

function release(db: Database): void {
  if (db.isTransaction) db.exec('ROLLBACK')
}

/** The files of bodies in the data folder of the services. Those that the index does not name are garbage. */
export const BODIES = join('gateway', 'objects')

/** Path of the index in the data folder of the services. */
export const INDEX = join('gateway', 'index.db')

export interface BodyFile {
  /** Below the data folder of the services. A file never changes under its name. */
  readonly path: string
  /** Bytes; undefined for a body without an object, that a pending deal reads. */
  readonly size: number | undefined
}

/**
 * The files that the index names.
 * @param since leaves out most files whose upload began before that time, ms since 1970; takes a moment however many
 * there are
 */
export function* bodyFiles(index: Database, since?: number): Iterable<BodyFile> {
  // Generations begin with the time in nanoseconds, and `object_files` sorts by them.
  const first = since === undefined ? '' : (BigInt(Math.floor(since)) * 1_000_000n).toString(16).padStart(16, '0')
  // An earlier version has named all files by their generations.
  const columns = columnsOf(index, 'objects')
  const column = columns.includes('body_name') ? 'coalesce(body_name, generation)' : 'generation'
  const inFile = columns.includes('body_mark') ? 'body_at = 0 AND body_mark IS NULL' : 'body_at = 0'
  for (const table of objectTables(index)) {
    const rows = index.prepare(`SELECT ${column} AS name, size FROM ${table} WHERE ${inFile} AND generation > ?`)
    for (const { name, size } of rows.iterate(first)) yield { path: pathOf(name as string), size: Number(size) }
  }
  if (since !== undefined) return
  for (const { name } of index.prepare(`SELECT ${column} AS name FROM retained WHERE ${inFile}`).iterate())
    yield { path: pathOf(name as string), size: undefined }
}

/** Number of bodies that are in an S3 store. */
export function bodiesInStore(index: Database): number {
  if (!columnsOf(index, 'objects').includes('body_mark')) return 0
  const count = (table: string) =>
    Number(index.prepare(`SELECT count(*) AS count FROM ${table} WHERE body_mark IS NOT NULL`).get().count)
  return objectTables(index).reduce((sum, table) => sum + count(table), 0)
}

/** The tables whose rows have bodies by the same columns. An earlier version has had one version of each object. */
function objectTables(index: Database): string[] {
  return ['objects', 'versions'].filter((table) => columnsOf(index, table).length > 0)
}

/** Names of the columns of a table; none when it does not exist. */
function columnsOf(db: Database, table: string): string[] {
  const columns = db.prepare('SELECT name FROM pragma_table_info(?)').all(table)
  return columns.map(({ name }) => name as string)
}

function pathOf(name: string): string {
  return join(BODIES, name.slice(-2), name)
}
