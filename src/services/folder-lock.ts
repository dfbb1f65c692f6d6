import { join, resolve } from 'node:path'
import { DatabaseSync, type DatabaseSyncInstance } from '@photostructure/sqlite'

/** The data folder belongs to another running instance. */
export class DataInUseError extends Error {
  override readonly name = 'DataInUseError'
  readonly code = 'DATA_IN_USE'
}

/** A connection that nothing refers to is closed by the garbage collector, and its lock with it, although what it guards may run on. */
const held = new Set<DatabaseSyncInstance>()

/**
 * Takes an existing folder for this instance alone, and returns how to give it back. The lock is SQLite's on an empty database, so the system
 * drops it when the process dies in whatever way, and a second instance in this process or one of its threads is refused too. No statement is prepared on it,
 * so closing it is giving the lock back.
 */
export function lockFolder(folder: string): () => void {
  const lock = new DatabaseSync(join(folder, 'lock'))
  try {
    lock.exec('PRAGMA locking_mode = EXCLUSIVE; BEGIN EXCLUSIVE')
  } catch (cause) {
    lock.close()
    if (!isBusy(cause)) throw cause
    throw new DataInUseError(
      `The data folder ${resolve(folder)} is in use by another running instance. Stop that one or choose another folder.`,
      { cause },
    )
  }
  held.add(lock)
  return () => {
    if (held.delete(lock)) lock.close()
  }
}

function isBusy(error: unknown): boolean {
  const SQLITE_BUSY = 5
  return error instanceof Error && 'errcode' in error && error.errcode === SQLITE_BUSY
}
