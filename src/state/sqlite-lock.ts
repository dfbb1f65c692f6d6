import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { lockFile } from '../../common/files/lock-file.js'
import { lockShared } from '../../common/files/shared-lock.js'
import { cannotUse, StateError } from './errors.js'
import { makeFile } from './folder-record.js'

interface FolderLock {
  release(): void
}

/** Longest wait for workers of a supervisor that has died: they end as soon as they notice, ms. */
const MAX_WORKERS_MS = 5000
const PAUSE_MS = 20

/** Name of the lock of a worker. */
const WORKER_LOCK = /^worker-\d+\.sqlite$/

/**
 * Locks a folder against other processes and other users in this one, and against workers that a dead supervisor has
 * left behind. Throws StateError DATA_IN_USE or DATA_FOLDER.
 */
export function lockFolder(folder: string): FolderLock {
  const release = lock(makeFile(join(folder, 'lock.sqlite')))
  if (release === undefined) throw inUse(folder)
  try {
    for (const name of readdirSync(folder).filter((name) => WORKER_LOCK.test(name))) waitForWorker(folder, name)
    return { release }
  } catch (error) {
    release()
    throw error
  }
}

/** Locks a folder as a worker, whose supervisor has the lock of the folder. Throws like `lockFolder`. */
export function lockAsWorker(folder: string, number: number): FolderLock {
  const release = lock(makeFile(join(folder, `worker-${number}.sqlite`)))
  if (release === undefined) throw inUse(folder)
  return { release }
}

/**
 * Locks the state folder of a data folder for one of several servers, whose records and parts are elsewhere, and brings
 * the data folder up to date. Throws like `lockFolder`.
 * @returns with the lowest number that no other one has
 */
export function joinFolder(folder: string, data: string): FolderLock & { readonly number: number } {
  const release = lock(makeFile(join(folder, 'lock.sqlite')), (file) => lockShared(file, data))
  if (release === undefined) throw inUse(folder)
  try {
    for (let number = 0; ; number++) {
      const own = lock(makeFile(join(folder, `server-${number}.sqlite`)))
      if (own === undefined) continue
      const releaseBoth = () => {
        own()
        release()
      }
      return { number, release: releaseBoth }
    }
  } catch (error) {
    release()
    throw error
  }
}

function inUse(folder: string): StateError {
  return new StateError(
    'DATA_IN_USE',
    `The data folder ${folder} is in use by another dealgate. Stop that one, or give this one another folder. Only servers with --state and --staging use one together, without --workers.`,
  )
}

function waitForWorker(folder: string, name: string): void {
  const late = performance.now() + MAX_WORKERS_MS
  let release = lock(join(folder, name))
  while (!release) {
    if (performance.now() > late) throw inUse(folder)
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, PAUSE_MS)
    release = lock(join(folder, name))
  }
  release()
}

function lock(file: string, locking: (file: string) => (() => void) | undefined = lockFile): (() => void) | undefined {
  try {
    return locking(file)
  } catch (error) {
    throw cannotUse(file, error)
  }
}
