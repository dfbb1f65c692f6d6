import { openingFailure } from '../common/opening-failure.js'

/** A file or folder of the data folder cannot be created or opened. The message says which one, why, and what to do. */
export class DataFolderError extends Error {
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
