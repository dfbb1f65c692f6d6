import { mkdtempSync, readdirSync, readFileSync, statSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { bringUpToDate } from '../../../common/files/data-version.js'

/** Creates a temporary folder and removes it when the test ends. */
export function temporaryFolder(t: { teardown(run: () => unknown): void }): string {
  const folder = mkdtempSync(join(tmpdir(), 'dealgate-test-'))
  // Helper processes of a client, such as those of a browser, may still write for a moment: then the removal is
  // retried.
  t.teardown(() => rm(folder, { recursive: true, force: true, maxRetries: 10 }))
  return folder
}

/** A data folder in which no server has started yet, as commands take it. */
export function dataFolder(t: { teardown(run: () => unknown): void }): string {
  const folder = temporaryFolder(t)
  bringUpToDate(folder)
  return folder
}

/** All that the files below a folder hold, as Latin-1. */
export function bytesBelow(folder: string): string {
  return readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .map((name) => join(folder, name))
    .filter((file) => statSync(file).isFile())
    .map((file) => readFileSync(file, 'latin1'))
    .join('')
}
