import { join, resolve } from 'node:path'
import { requireUsableVersion } from '../common/files/data-version.js'
import { lockFile } from '../common/files/lock-file.js'
import { makePrivateDatabase } from '../common/files/private-file.js'
import { lockShared } from '../common/files/shared-lock.js'
import { openingFailure } from '../common/opening-failure.js'

/** Another running instance uses the data. */
export class DataInUseError extends Error {
  override readonly name = 'DataInUseError'
  readonly code = 'DATA_IN_USE'
}

/**
 * Locks an existing folder for this instance. Throws DataInUseError or DataFolderError.
 * @returns releases the lock
 */
export function lockFolder(folder: string): () => void {
  return locked(folder, lockFile, 'Stop that one or choose another folder.')
}

/**
 * Locks an existing folder, which instances use together whose tables are all in one PostgreSQL database, and brings it
 * up to date. Throws DataInUseError or DataFolderError.
 * @returns releases the lock
 */
export function joinFolder(folder: string): () => void {
  return locked(
    folder,
    (file) => lockShared(file, folder),
    'Stop that one: it has its tables there, or is of an earlier version.',
  )
}

function locked(folder: string, lock: (file: string) => (() => void) | undefined, remedy: string): () => void {
  const file = join(folder, 'lock')
  try {
    makePrivateDatabase(file)
    const release = lock(file)
    if (release !== undefined) return release
  } catch (error) {
    throw explained(file, error)
  }
  throw new DataInUseError(`The data folder ${resolve(folder)} is in use by another running instance. ${remedy}`)
}

/** A file or folder of the data folder cannot be created or opened. The message says which one, why, and what to do. */
class DataFolderError extends Error {
  override readonly name = 'DataFolderError'
  readonly code = 'DATA_FOLDER'
}

/**
 * Converts an error of the file system to a DataFolderError; returns any other error unchanged.
 * @param path the file or folder, used when the error does not name one
 */
export function explained(path: string, error: unknown): unknown {
  if (error instanceof DataFolderError) return error
  const message = openingFailure(path, error)
  return message === undefined ? error : new DataFolderError(message, { cause: error })
}

/**
 * Opens a database in the data folder of the services, for a program beside them, which may run or not. Throws
 * DataFolderError when a file or folder cannot be used.
 */
export async function openBeside<T>(data: string, open: () => Promise<T>): Promise<T> {
  try {
    requireUsableVersion(data)
    return await open()
  } catch (error) {
    throw explained(data, error)
  }
}
