import { DatabaseSync } from '@photostructure/sqlite'

/** The rows of a query in a file of SQLite, which other programs may have open. */
// biome-ignore lint/suspicious/noExplicitAny: tests look at rows of any shape
export function rowsOf(file: string, query: string): any[] {
  const db = new DatabaseSync(file, { readOnly: true })
  try {
    return db.prepare(query).all()
  } finally {
    db.close()
  }
}

/** Number of rows of what stands behind FROM. */
export function countRows(file: string, from: string): number {
  return rowsOf(file, `SELECT count(*) AS count FROM ${from}`)[0].count
}
