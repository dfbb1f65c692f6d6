import type { Database } from '../../database.js'

/**
 * Id of the first account, which the gateway makes at its first start. It owns what was there before other accounts.
 */
export const FIRST = 1

/**
 * Accounts. `iam` is 0 for the first one. `configured` is the digest of the pair that the configuration named when the
 * first one got its keys. `user` names the user of the task platform that the account belongs to. `quotas` has what an
 * account may store in all of its buckets.
 */
export const accountSchema = `
  CREATE TABLE IF NOT EXISTS accounts (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    access_key TEXT NOT NULL UNIQUE,
    secret_key TEXT NOT NULL,
    canonical_id TEXT NOT NULL UNIQUE,
    name TEXT NOT NULL,
    iam INTEGER NOT NULL,
    created TEXT NOT NULL,
    configured TEXT,
    user TEXT UNIQUE
  ) STRICT;
  CREATE TABLE IF NOT EXISTS quotas (
    account INTEGER PRIMARY KEY,
    bytes INTEGER, -- NULL: no bound
    objects INTEGER,
    uploads INTEGER
  ) STRICT;
`

/** Names of the columns of a table; none when it does not exist. */
export function columnsOf(db: Database, table: string): string[] {
  return db
    .prepare(`SELECT name FROM pragma_table_info('${table}')`)
    .all()
    .map(({ name }) => name as string)
}
