import { join } from 'node:path'
import { DatabaseSync, type DatabaseSyncInstance } from '@photostructure/sqlite'
import { reasonOf, StateError } from './errors.js'
import { makeFile } from './folders.js'

export interface FolderLock {
  release(): void
}

/** A connection that nothing refers to is closed by the garbage collector, and its lock with it, although what it guards may run on. */
const held = new Set<DatabaseSyncInstance>()

/**
 * Keeps a folder to ourselves, against other processes and against a second opener in this one. It is SQLite's exclusive lock on an empty database,
 * which the system releases however the process ends (https://www.sqlite.org/lockingv3.html). Throws StateError DATA_IN_USE.
 */
export function lockFolder(folder: string): FolderLock {
  const file = makeFile(join(folder, 'lock.sqlite'))
  let database: DatabaseSyncInstance | undefined
  try {
    database = new DatabaseSync(file)
    database.exec('BEGIN EXCLUSIVE')
  } catch (error) {
    database?.close()
    if (isBusy(error)) {
      throw new StateError(
        'DATA_IN_USE',
        `The data folder ${folder} is in use by another dealgate. Stop that one, or give this one another folder.`,
        error,
      )
    }
    throw new StateError('DATA_FOLDER', `The folder ${folder} cannot be locked: ${reasonOf(error)}`, error)
  }
  const lock = database
  held.add(lock)
  return {
    release() {
      if (held.delete(lock)) lock.close()
    },
  }
}

/** SQLITE_BUSY or SQLITE_LOCKED, extended codes too (https://www.sqlite.org/rescode.html). */
function isBusy(error: unknown): boolean {
  const code = error instanceof Error && 'errcode' in error ? Number(error.errcode) & 0xff : 0
  return code === 5 || code === 6
}
