import { DatabaseSync, type DatabaseSyncInstance } from '@photostructure/sqlite'

/**
 * The garbage collector closes a connection without references and so releases its lock, although its holder may still
 * run.
 */
const held = new Set<DatabaseSyncInstance>()

/**
 * Takes a lock of SQLite on an existing, empty file (https://www.sqlite.org/lockingv3.html). The system releases it
 * however the process ends. It excludes other processes, and other callers in this process and its threads. No
 * statement is prepared on the connection, so closing it releases the lock.
 * @param kind any number of holders may have the shared one at a time, but none beside the exclusive one
 * @returns a function that releases the lock; undefined when another holder has it
 */
export function lockFile(file: string, kind: 'exclusive' | 'shared' = 'exclusive'): (() => void) | undefined {
  const lock = new DatabaseSync(file)
  try {
    // A journal on the disk would need room, and nothing is written.
    if (kind === 'shared') lock.exec('BEGIN; SELECT count(*) FROM sqlite_schema')
    else lock.exec('PRAGMA journal_mode = MEMORY; PRAGMA locking_mode = EXCLUSIVE; BEGIN EXCLUSIVE')
  } catch (error) {
    lock.close()
    if (isBusy(error)) return undefined
    throw error
  }
  held.add(lock)
  return () => {
    if (held.delete(lock)) lock.close()
  }
}

/** SQLITE_BUSY or SQLITE_LOCKED, including extended codes (https://www.sqlite.org/rescode.html). */
function isBusy(error: unknown): boolean {
  const code = error instanceof Error && 'errcode' in error ? Number(error.errcode) & 0xff : 0
  return code === 5 || code === 6
}
