/**
 * What was uploaded, once per content: by the CID of its root, a CIDv0. `blocks` finds the content that has a block, by
 * its SHA-256; each is in the CAR of the content. Sizes are bytes.
 */
export const contentSchema = `
  CREATE TABLE contents (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    cid TEXT NOT NULL UNIQUE,
    size INTEGER NOT NULL,
    car_size INTEGER NOT NULL
  ) STRICT;
  CREATE TABLE blocks (
    digest BLOB PRIMARY KEY,
    content INTEGER NOT NULL REFERENCES contents (id)
  ) STRICT, WITHOUT ROWID;
`
