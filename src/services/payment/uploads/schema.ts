/**
 * Uploads, each of one content by one wallet. `folded_name` is the file name in lower case, by which lists are
 * searched. `duration` is in days; `file_type` is 0 for an upload of a user, 1 for one of an NFT. Times are Unix
 * seconds.
 */
export const uploadSchema = `
  CREATE TABLE uploads (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    w_cid TEXT NOT NULL UNIQUE,
    wallet TEXT NOT NULL,
    content INTEGER NOT NULL REFERENCES contents (id),
    file_name TEXT NOT NULL,
    folded_name TEXT NOT NULL,
    file_size INTEGER NOT NULL,
    file_type INTEGER NOT NULL,
    duration INTEGER NOT NULL,
    status TEXT NOT NULL DEFAULT 'Pending',
    created INTEGER NOT NULL
  ) STRICT;
  CREATE INDEX uploads_of_wallet ON uploads (wallet, file_type, id);
  CREATE INDEX unpaid_uploads ON uploads (wallet, file_size) WHERE status = 'Pending';
`

/** Uploads within the part of a month that is free. */
export const freeSchema = `
  ALTER TABLE uploads ADD COLUMN is_free INTEGER NOT NULL DEFAULT 0;
  CREATE INDEX free_uploads ON uploads (wallet, created) WHERE is_free = 1;
  CREATE INDEX open_free_uploads ON uploads (created_epoch) WHERE is_free = 1 AND status IN ('Free', 'TaskCreated');
`
