/**
 * The index. Keys are BLOBs: their order is that of UTF-8 bytes, and NUL is a byte like another. `objects` is clustered by key, so a page of a listing
 * is one stretch of it. Small bodies lie in a table of their own, to keep that stretch short; the rest are files named by their generation.
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
    inline INTEGER NOT NULL,
    PRIMARY KEY (bucket, key)
  ) STRICT, WITHOUT ROWID;
  CREATE UNIQUE INDEX IF NOT EXISTS object_files ON objects (generation) WHERE inline = 0;
  CREATE TABLE IF NOT EXISTS bodies (
    generation TEXT PRIMARY KEY,
    body BLOB NOT NULL
  ) STRICT;
  CREATE TABLE IF NOT EXISTS policies (
    bucket INTEGER NOT NULL,
    prefix BLOB NOT NULL,
    policy TEXT NOT NULL,
    PRIMARY KEY (bucket, prefix)
  ) STRICT, WITHOUT ROWID;
`
