import { randomBytes } from 'node:crypto'
import type { Database, Writer } from '../../database.js'

const NAME = 'token-key'
const BYTES = 32

/** The key that signs the tokens: random, made at the first start. Durable on return. */
export function openTokenKey(db: Database, writer: Writer): Promise<Uint8Array> {
  const find = db.prepare('SELECT value FROM settings WHERE name = ?')
  const add = db.prepare('INSERT INTO settings (name, value) VALUES (?, ?)')
  return writer.run(() => {
    if (find.get(NAME) === undefined) add.run(NAME, randomBytes(BYTES))
    return find.get(NAME).value as Uint8Array
  })
}
