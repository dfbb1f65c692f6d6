import { randomBytes } from 'node:crypto'
import type { Database, Writer } from '../database.js'

const BYTES = 32

/**
 * 32 random bytes, made at the first start and kept under this name in the table `settings`. Durable when the promise
 * resolves.
 */
export function openRandomSetting(db: Database, writer: Writer, name: string): Promise<Uint8Array> {
  const find = db.prepare('SELECT value FROM settings WHERE name = ?')
  const add = db.prepare('INSERT INTO settings (name, value) VALUES (?, ?)')
  return writer.run(() => {
    if (find.get(name) === undefined) add.run(name, randomBytes(BYTES))
    return find.get(name).value as Uint8Array
  })
}
