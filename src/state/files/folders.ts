import { makePrivateDatabase, makePrivateFolder } from '../../common/files/private-file.js'
import { cannotUse } from '../errors.js'

/**
 * Creates the folder and its parents unless they exist, and closes the folder to other accounts. Throws StateError
 * DATA_FOLDER with the reason.
 */
export function makeFolder(folder: string): string {
  return usable(folder, makePrivateFolder)
}

/**
 * Creates an empty private file for a database, or closes an existing one to other accounts. Throws as `makeFolder`.
 */
export function makeFile(file: string): string {
  return usable(file, makePrivateDatabase)
}

function usable(path: string, make: (path: string) => void): string {
  try {
    make(path)
    return path
  } catch (error) {
    throw cannotUse(path, error)
  }
}
