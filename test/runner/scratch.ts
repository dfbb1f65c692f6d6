import { chmodSync, mkdtempSync, rmSync, statfsSync } from 'node:fs'
import { freemem, tmpdir } from 'node:os'
import { join } from 'node:path'
import { whenWeEnd } from '../support/server/child.js'

const MEMORY = '/dev/shm'
/** Room in memory for the data of all tests that run at a time, bytes. */
const ENOUGH = 8 * 2 ** 30

export interface Scratch {
  /** Variables that have `temporaryFolder` and programs keep their data in it, and that name it as such. */
  readonly env: Readonly<Record<string, string>>
  remove(): void
}

/**
 * Makes a folder for the data of the tests, in memory if there is room for it: a disk serves one sync after another,
 * and tests that run side by side wait for those of each other. Programs sync as ever, and tests see that they do.
 * @param chosen a folder to make it in
 */
export function makeScratch(chosen: string | undefined): Scratch {
  const folder = mkdtempSync(join(chosen ?? (memoryHasRoom() ? MEMORY : tmpdir()), 'dealgate-tests-'))
  // PostgreSQL runs as another user.
  chmodSync(folder, 0o755)
  const remove = () => rmSync(folder, { recursive: true, force: true, maxRetries: 10 })
  whenWeEnd(remove)
  return { env: { TMPDIR: folder, SCRATCH_UNDER_TEST: folder }, remove }
}

function memoryHasRoom(): boolean {
  try {
    const { bavail, bsize } = statfsSync(MEMORY)
    return Math.min(bavail * bsize, freemem()) >= ENOUGH
  } catch {
    return false
  }
}
