import { closeSync, mkdirSync, openSync } from 'node:fs'
import { open } from 'node:fs/promises'
import { errorCode, reasonOf, StateError } from './errors.js'

/** Only the account that runs the server may look. */
export const FOLDER_MODE = 0o700
export const FILE_MODE = 0o600

/** Makes the folder, and those above it, unless they are there. Throws StateError DATA_FOLDER with the reason in words. */
export function makeFolder(folder: string): string {
  try {
    mkdirSync(folder, { recursive: true, mode: FOLDER_MODE })
    return folder
  } catch (error) {
    throw new StateError('DATA_FOLDER', `The folder ${folder} cannot be used: ${folderReason(error)}`, error)
  }
}

/**
 * Makes an empty file that only we can read, unless there is one. It must not open an existing one: closing any descriptor of a file drops all
 * POSIX locks that this process has on it, SQLite's too (https://www.sqlite.org/howtocorrupt.html, section 2.2).
 */
export function makeFile(file: string): string {
  try {
    closeSync(openSync(file, 'wx', FILE_MODE))
  } catch (error) {
    if (errorCode(error) !== 'EEXIST') {
      throw new StateError('DATA_FOLDER', `The file ${file} cannot be made: ${folderReason(error)}`, error)
    }
  }
  return file
}

/** Makes the names in a folder durable, as fsync of a file makes its bytes (https://man7.org/linux/man-pages/man2/fsync.2.html, Description). */
export async function syncFolder(folder: string): Promise<void> {
  // Windows cannot open a folder for this and keeps names durable by itself.
  if (process.platform === 'win32') return
  const handle = await open(folder, 'r')
  try {
    await handle.sync()
  } finally {
    await handle.close()
  }
}

function folderReason(error: unknown): string {
  switch (errorCode(error)) {
    case 'EACCES':
    case 'EPERM':
      return 'this account may not write there'
    case 'ENOTDIR':
    case 'EEXIST':
      return 'a file of that name is in the way'
    case 'ENOSPC':
    case 'EDQUOT':
      return 'the disk is full'
    case 'EROFS':
      return 'the file system is read-only'
    default:
      return reasonOf(error)
  }
}
