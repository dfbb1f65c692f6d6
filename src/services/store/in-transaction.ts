import type { Database } from '../database.js'

/** Runs `change` in one transaction. Another process may have made the change: `change` looks first. */
export function inTransaction<T>(db: Database, change: () => T): T {
  db.exec('BEGIN IMMEDIATE')
  try {
    const result = change()
    db.exec('COMMIT')
    return result
  } catch (error) {
    if (db.isTransaction) db.exec('ROLLBACK')
    throw error
  }
}
