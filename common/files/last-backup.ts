import { chmodSync } from 'node:fs'
import { join } from 'node:path'
import { parseObject } from '../json.js'
import { readIfExists, writePrivateFile } from './private-file.js'

/**
 * The file below a data folder that says when its last backup was taken. No backup contains it: a restored folder has
 * no backup yet.
 */
export const LAST_BACKUP_FILE = 'last-backup.json'

/** Notes a complete backup, for a server that runs on the folder. Throws the error of the system. */
export function noteBackup(data: string, taken: Date): void {
  const file = join(data, LAST_BACKUP_FILE)
  writePrivateFile(file, `${JSON.stringify({ taken: taken.toISOString() })}\n`)
  // Backups are often made by root, and the server runs as a user with fewer rights. A time is no secret.
  chmodSync(file, 0o644)
}

/**
 * When the last backup of the folder was taken, ms since 1970; undefined if none is noted. Throws the error of the
 * system for a file that cannot be read.
 */
export function lastBackup(data: string): number | undefined {
  const text = readIfExists(join(data, LAST_BACKUP_FILE))
  const taken = text === undefined ? undefined : parseObject(text)?.taken
  const time = typeof taken === 'string' ? Date.parse(taken) : Number.NaN
  return Number.isNaN(time) ? undefined : time
}
