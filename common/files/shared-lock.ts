import { bringUpToDate, isUpToDate } from './data-version.js'
import { lockFile } from './lock-file.js'

/** Time for which another process may bring the folder up to date, and pause between two attempts, ms. */
const PATIENCE_MS = 2000
const PAUSE_MS = 20

/**
 * Locks a folder that several processes use at a time, and brings it up to date: the first one does it alone. Throws
 * DataVersionError, and what the file system does.
 * @param file the lock, below the folder or one inside it
 * @returns a function that releases the lock; undefined while a process has the folder for itself, or some use an
 *   earlier version of it
 */
export function lockShared(file: string, folder: string): (() => void) | undefined {
  const late = performance.now() + PATIENCE_MS
  for (;;) {
    const release = lockFile(file, 'shared')
    if (release !== undefined && mayUse(folder, release)) return release
    release?.()
    const releaseAll = lockFile(file)
    if (releaseAll !== undefined) {
      try {
        bringUpToDate(folder)
      } finally {
        releaseAll()
      }
      // A full disk keeps no version.
      const again = lockFile(file, 'shared')
      if (again !== undefined) return again
    }
    if (performance.now() > late) return undefined
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, PAUSE_MS)
  }
}

function mayUse(folder: string, release: () => void): boolean {
  try {
    return isUpToDate(folder)
  } catch (error) {
    release()
    throw error
  }
}
