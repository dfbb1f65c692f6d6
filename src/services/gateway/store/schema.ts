import type { Database } from '../../database.js'

/** The database of the gateway, in its folder. */
export const INDEX_FILE = 'index.db'

/**
 * The index. Keys are BLOBs: their order is that of UTF-8 bytes, and NUL is a byte like another. `objects` is clustered by key, so a page of a listing
 * is one stretch of it. `body_at` says where a body lies: 0 in a file named by the generation, 1 in `bodies`, a table of its own to keep that stretch short,
 * 2 nowhere here: it is brought back from a deal. `retained` names bodies without an object that a deal is still made of.
 */
export const schema = `
  CREATE TABLE IF NOT EXISTS buckets (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    name TEXT NOT NULL UNIQUE,
    created TEXT NOT NULL,
    changed TEXT NOT NULL,
    objects INTEGER NOT NULL DEFAULT 0,
    bytes INTEGER NOT NULL DEFAULT 0
  ) STRICT;
  CREATE TABLE IF NOT EXISTS objects (
    bucket INTEGER NOT NULL,
    key BLOB NOT NULL,
    size INTEGER NOT NULL,
    modified TEXT NOT NULL,
    generation TEXT NOT NULL,
    etag TEXT NOT NULL,
    content_type TEXT NOT NULL,
    headers TEXT,
    body_at INTEGER NOT NULL,
    PRIMARY KEY (bucket, key)
  ) STRICT, WITHOUT ROWID;
  CREATE UNIQUE INDEX IF NOT EXISTS object_files ON objects (generation) WHERE body_at = 0;
  CREATE TABLE IF NOT EXISTS bodies (
    generation TEXT PRIMARY KEY,
    body BLOB NOT NULL
  ) STRICT;
  CREATE TABLE IF NOT EXISTS retained (
    generation TEXT PRIMARY KEY,
    bucket INTEGER NOT NULL,
    body_at INTEGER NOT NULL
  ) STRICT;
  CREATE INDEX IF NOT EXISTS retained_of_bucket ON retained (bucket, generation);
  CREATE TABLE IF NOT EXISTS policies (
    bucket INTEGER NOT NULL,
    prefix BLOB NOT NULL,
    policy TEXT NOT NULL,
    PRIMARY KEY (bucket, prefix)
  ) STRICT, WITHOUT ROWID;
`

/** Before bodies could lie nowhere here, the column told only whether they lie in the index. */
export function migrate(db: Database): void {
  const before = db.prepare("SELECT 1 FROM pragma_table_info('objects') WHERE name = 'inline'").get()
  if (before !== undefined) db.exec('ALTER TABLE objects RENAME COLUMN inline TO body_at')
}
