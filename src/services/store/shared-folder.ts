import { randomBytes } from 'node:crypto'
import { readFileSync, rmSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { keepPrivateFile } from '../../common/files/private-file.js'
import type { Database, Settings } from './database.js'

/** Name of the file that says to which database a folder belongs, and of the setting with the same content. */
const NAME = 'folder'

/**
 * Throws RangeError unless the folder is the one that all processes of the database use: what one of them has written
 * there, the others must find. The first start makes it so. Nothing is checked for a database of one process.
 * @param owner for the message, such as `the storage payment service`
 */
export async function requireSharedFolder(
  db: Database<{ readonly settings: Settings }>,
  folder: string,
  owner: string,
): Promise<void> {
  if (!db.shared) return
  const file = join(folder, NAME)
  // Before the database has it: a crash between the two leaves a folder that the next start takes.
  const isNew = keepPrivateFile(file, randomBytes(16).toString('hex'))
  const mark = readFileSync(file, 'utf8')
  const kept = await db.transaction(async ({ settings }) => {
    const known = await settings.find(NAME)
    if (known === undefined) await settings.add(NAME, Buffer.from(mark))
    return known === undefined ? mark : Buffer.from(known).toString()
  })
  if (kept === mark) return
  if (isNew) rmSync(file)
  throw new RangeError(
    `The files of ${owner} in this database are in another folder than ${resolve(folder)}: mount that one here.`,
  )
}
