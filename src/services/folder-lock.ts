import { join, resolve } from 'node:path'
import { lockFile } from '../common/files/lock-file.js'
import { makePrivateDatabase } from '../common/files/private-file.js'
import { explained } from './data-folder-error.js'

/** Another running instance uses the data folder. */
export class DataInUseError extends Error {
  override readonly name = 'DataInUseError'
  readonly code = 'DATA_IN_USE'
}

/**
 * Locks an existing folder for this instance. Throws DataInUseError or DataFolderError.
 * @returns releases the lock
 */
export function lockFolder(folder: string): () => void {
  const file = join(folder, 'lock')
  const release = lock(file)
  if (release !== undefined) return release
  throw new DataInUseError(
    `The data folder ${resolve(folder)} is in use by another running instance. Stop that one or choose another folder.`,
  )
}

function lock(file: string): (() => void) | undefined {
  try {
    makePrivateDatabase(file)
    return lockFile(file)
  } catch (error) {
    throw explained(file, error)
  }
}
