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

/**
 * Contents go away. `place` is `here` while the CAR is in the folder, `provider` when only a storage provider has the
 * bytes, and `gone` when no upload needs them. A block may be in several contents, so that it is found while one is
 * left. `packed_cid` is the CID of an upload in the CAR of its deal, by which the provider gives it back.
 * `created_epoch` is null for uploads of earlier versions, until the next start.
 */
export const retentionSchema = `
  ALTER TABLE contents ADD COLUMN place TEXT NOT NULL DEFAULT 'here';
  CREATE INDEX contents_by_place ON contents (id) WHERE place <> 'gone';
  CREATE TABLE shared_blocks (
    digest BLOB NOT NULL,
    content INTEGER NOT NULL REFERENCES contents (id),
    PRIMARY KEY (digest, content)
  ) STRICT, WITHOUT ROWID;
  INSERT INTO shared_blocks SELECT digest, content FROM blocks;
  DROP TABLE blocks;
  ALTER TABLE shared_blocks RENAME TO blocks;
  CREATE INDEX blocks_of_content ON blocks (content);
  ALTER TABLE uploads ADD COLUMN packed_cid TEXT;
  ALTER TABLE uploads ADD COLUMN created_epoch INTEGER;
  CREATE INDEX uploads_of_content ON uploads (content);
  CREATE INDEX pending_uploads ON uploads (created_epoch) WHERE status = 'Pending';
  CREATE INDEX open_uploads ON uploads (wallet, file_size) WHERE status NOT IN ('Success', 'Refunded');
`

/** The bytes of a content are those of a file, or the CAR of a directory. */
export const directorySchema = `
  ALTER TABLE contents ADD COLUMN kind TEXT NOT NULL DEFAULT 'file';
`
