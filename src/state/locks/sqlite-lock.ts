import { join } from 'node:path'
import { lockFile } from '../../common/files/lock-file.js'
import { cannotUse, StateError } from '../errors.js'
import { makeFile } from '../files/folders.js'

export interface FolderLock {
  release(): void
}

/** Locks a folder against other processes and other users in this one. Throws StateError DATA_IN_USE or DATA_FOLDER. */
export function lockFolder(folder: string): FolderLock {
  const release = lock(makeFile(join(folder, 'lock.sqlite')))
  if (release !== undefined) return { release }
  throw new StateError(
    'DATA_IN_USE',
    `The data folder ${folder} is in use by another dealgate. Stop that one, or give this one another folder.`,
  )
}

function lock(file: string): (() => void) | undefined {
  try {
    return lockFile(file)
  } catch (error) {
    throw cannotUse(file, error)
  }
}
