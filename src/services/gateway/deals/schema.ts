import type { Database } from '../../database.js'

/**
 * What was given to the storage network. A deal is pending until it has a record, and is about a whole bucket when its key is empty. `deal_files` are its files:
 * path and CID are there once they are packed. `network` is the kind of it, since another may be in use at the next start. A deal of which nothing came is `dropped`, and goes once its files are gone.
 * `ends` is the epoch at which a deal ends, until its files have been removed after that.
 */
export const dealSchema = `
  CREATE TABLE IF NOT EXISTS deals (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    reference TEXT NOT NULL UNIQUE,
    network TEXT NOT NULL,
    bucket INTEGER NOT NULL,
    bucket_name TEXT NOT NULL,
    key BLOB NOT NULL,
    token TEXT UNIQUE,
    terms TEXT NOT NULL,
    asked TEXT NOT NULL,
    files INTEGER NOT NULL DEFAULT 0,
    bytes INTEGER NOT NULL DEFAULT 0,
    record TEXT,
    dropped INTEGER NOT NULL DEFAULT 0,
    ends INTEGER
  ) STRICT;
  CREATE INDEX IF NOT EXISTS deal_history ON deals (bucket, key, id) WHERE record IS NOT NULL;
  CREATE INDEX IF NOT EXISTS deals_pending ON deals (id) WHERE record IS NULL;
  CREATE INDEX IF NOT EXISTS deals_by_end ON deals (ends) WHERE ends IS NOT NULL;
  CREATE TABLE IF NOT EXISTS deal_files (
    deal INTEGER NOT NULL,
    key BLOB NOT NULL,
    generation TEXT NOT NULL,
    size INTEGER NOT NULL,
    etag TEXT NOT NULL,
    path TEXT,
    cid TEXT,
    PRIMARY KEY (deal, key)
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX IF NOT EXISTS deal_files_of_generation ON deal_files (generation);
`

/** Before the files of deals that have ended were removed, nothing but the record told when that is. */
export function migrateDeals(db: Database): void {
  const columns = db.prepare("SELECT name FROM pragma_table_info('deals')").all() as { name: string }[]
  if (columns.length === 0 || columns.some(({ name }) => name === 'ends')) return
  db.exec(`
    BEGIN;
    ALTER TABLE deals ADD COLUMN ends INTEGER;
    UPDATE deals SET ends = json_extract(record, '$.endEpoch') WHERE record IS NOT NULL;
    COMMIT;
  `)
}
