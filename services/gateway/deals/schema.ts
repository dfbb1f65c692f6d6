import type { EarlyDatabase } from '../../store/database.js'
import { FIRST } from '../accounts/accounts.js'

const DEALS = `CREATE TABLE IF NOT EXISTS deals (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    reference TEXT NOT NULL UNIQUE,
    network TEXT NOT NULL,
    bucket INTEGER NOT NULL,
    bucket_name TEXT NOT NULL,
    key BLOB NOT NULL,
    token TEXT,
    terms TEXT NOT NULL,
    asked TEXT NOT NULL,
    files INTEGER NOT NULL DEFAULT 0,
    bytes INTEGER NOT NULL DEFAULT 0,
    record TEXT,
    dropped INTEGER NOT NULL DEFAULT 0,
    ends INTEGER,
    account INTEGER NOT NULL DEFAULT ${FIRST},
    task INTEGER,
    UNIQUE (account, token)
  ) STRICT;`

/**
 * Deals with the storage network. A deal is pending until it has a record; its key is empty when it covers a whole
 * bucket. `deal_files` holds its files, with path and CID once they are packed. `network` is the kind of the network,
 * since the next start may use another one. A deal that was not made is `dropped`, and removed once its files are
 * removed. `ends` is the epoch at which a deal ends, until its files have been removed after that. `account` has
 * ordered the deal and pays for it; its client tokens are its own. `task` is the offline task that a deal belongs to.
 */
export const dealSchema = `
  ${DEALS}
  CREATE INDEX IF NOT EXISTS deal_history ON deals (bucket, key, id) WHERE record IS NOT NULL;
  CREATE INDEX IF NOT EXISTS deals_pending ON deals (id) WHERE record IS NULL;
  CREATE INDEX IF NOT EXISTS deals_by_end ON deals (ends) WHERE ends IS NOT NULL;
  CREATE INDEX IF NOT EXISTS deals_by_cid ON deals (json_extract(record, '$.dealCid')) WHERE record IS NOT NULL;
  CREATE INDEX IF NOT EXISTS deals_of_task ON deals (task, id) WHERE task IS NOT NULL;
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

/**
 * Earlier versions kept the files of ended deals, the end of a deal stood in its record, and client tokens were those
 * of the only account.
 */
export function adaptDeals(db: EarlyDatabase): void {
  const columns = db.columns('deals')
  if (columns.length === 0) return
  if (!columns.includes('ends')) {
    db.exec(`
      ALTER TABLE deals ADD COLUMN ends INTEGER;
      UPDATE deals SET ends = json_extract(record, '$.endEpoch') WHERE record IS NOT NULL;
    `)
  }
  if (!columns.includes('account')) db.exec(WITH_ACCOUNT)
  else if (!columns.includes('task')) db.exec('ALTER TABLE deals ADD COLUMN task INTEGER')
}

const BEFORE =
  'id, reference, network, bucket, bucket_name, key, token, terms, asked, files, bytes, record, dropped, ends'

/** A deal id is never used again: the files of a removed deal may still be there. */
const WITH_ACCOUNT = `
  ALTER TABLE deals RENAME TO deals_before;
  ${DEALS}
  INSERT INTO deals (${BEFORE}) SELECT ${BEFORE} FROM deals_before;
  DELETE FROM sqlite_sequence WHERE name = 'deals';
  UPDATE sqlite_sequence SET name = 'deals' WHERE name = 'deals_before';
  DROP TABLE deals_before;
`
