import { mkdtempSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/** Creates a temporary folder and removes it when the test ends. */
export function temporaryFolder(t: { teardown(run: () => unknown): void }): string {
  const folder = mkdtempSync(join(tmpdir(), 'dealgate-test-'))
  // Helper processes of a client, such as those of a browser, may still write for a moment: then the removal is
  // retried.
  t.teardown(() => rm(folder, { recursive: true, force: true, maxRetries: 10 }))
  return folder
}
