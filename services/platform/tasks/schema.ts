/**
 * Tasks, with the deals that their CSV names and the bids of providers.
 *
 * A task is a draft until it is `posted`: its deals are added in several transactions, and it exists once the last one
 * is committed. Drafts that a crash leaves are removed at the next start. `digest` is that of the request, so that a
 * repeated one is known. Prices are attofil as texts of fixed length, which sort as numbers. `due` is the epoch at
 * which the platform moves a task or a deal by itself; null when it never does. A deal belongs to the provider of its
 * task. `to_fetch` counts the deals of a task whose provider has no CAR yet; `stored` is what the fetched CAR of a deal
 * takes in the folder of the platform, bytes. `mails` are those that are not sent yet, and those that were.
 */
export const taskSchema = `
  CREATE TABLE tasks (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    uuid TEXT NOT NULL,
    user INTEGER NOT NULL,
    digest TEXT NOT NULL,
    posted INTEGER NOT NULL DEFAULT 0,
    status TEXT NOT NULL DEFAULT 'Created',
    name TEXT NOT NULL,
    folded_name TEXT NOT NULL,
    description TEXT NOT NULL,
    curated_dataset TEXT NOT NULL,
    is_public INTEGER NOT NULL,
    type TEXT,
    miner_id TEXT,
    tags TEXT NOT NULL,
    min_price TEXT,
    max_price TEXT,
    expire_days INTEGER,
    fast_retrieval INTEGER NOT NULL,
    bid_mode TEXT NOT NULL,
    source_id INTEGER,
    duration INTEGER NOT NULL,
    file_name TEXT NOT NULL,
    created INTEGER NOT NULL,
    created_epoch INTEGER NOT NULL,
    expires_epoch INTEGER,
    smallest_piece INTEGER,
    largest_piece INTEGER,
    bids INTEGER NOT NULL DEFAULT 0,
    deals INTEGER NOT NULL DEFAULT 0,
    active_deals INTEGER NOT NULL DEFAULT 0,
    failed_deals INTEGER NOT NULL DEFAULT 0,
    to_fetch INTEGER NOT NULL DEFAULT 0,
    due INTEGER
  ) STRICT;
  CREATE UNIQUE INDEX tasks_by_uuid ON tasks (uuid) WHERE posted = 1;
  CREATE INDEX task_drafts ON tasks (id) WHERE posted = 0;
  CREATE INDEX tasks_of_user ON tasks (user, id) WHERE posted = 1;
  CREATE INDEX public_tasks ON tasks (id) WHERE posted = 1 AND is_public = 1;
  CREATE INDEX public_task_filters ON tasks (
    id, created, miner_id, status, folded_name, type, tags, max_price, min_price
  ) WHERE posted = 1 AND is_public = 1;
  CREATE INDEX tasks_by_status ON tasks (user, status, deals, active_deals, failed_deals) WHERE posted = 1;
  CREATE INDEX tasks_of_provider ON tasks (miner_id, id) WHERE posted = 1;
  CREATE INDEX tasks_due ON tasks (due) WHERE posted = 1 AND due IS NOT NULL;
  CREATE INDEX tasks_to_fetch ON tasks (miner_id, user, id) WHERE posted = 1 AND to_fetch > 0;
  CREATE TABLE deals (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    task INTEGER NOT NULL REFERENCES tasks (id),
    deal_cid TEXT,
    payload_cid TEXT,
    piece_cid TEXT,
    source_file_name TEXT,
    file_source_url TEXT NOT NULL,
    md5 TEXT,
    file_size INTEGER,
    start_epoch INTEGER,
    cost TEXT,
    status TEXT NOT NULL DEFAULT 'Created',
    note TEXT,
    file_path TEXT,
    created INTEGER NOT NULL,
    updated INTEGER NOT NULL,
    due INTEGER,
    stored INTEGER
  ) STRICT;
  CREATE INDEX deals_stored ON deals (id, status, stored) WHERE stored IS NOT NULL;
  CREATE INDEX deals_to_fetch ON deals (task, id) WHERE status IN ('Created', 'Waiting', 'Downloading');
  CREATE INDEX deals_of_task ON deals (task, id);
  CREATE INDEX deals_by_status ON deals (task, status COLLATE NOCASE, id);
  CREATE INDEX deals_by_cid ON deals (deal_cid) WHERE deal_cid IS NOT NULL;
  CREATE INDEX deals_due ON deals (due) WHERE due IS NOT NULL;
  CREATE TABLE bids (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    task INTEGER NOT NULL REFERENCES tasks (id),
    miner_id TEXT NOT NULL,
    price TEXT NOT NULL,
    score INTEGER NOT NULL,
    min_piece_size INTEGER NOT NULL,
    contact_info TEXT NOT NULL,
    proposal TEXT NOT NULL,
    expire_days INTEGER NOT NULL,
    status TEXT NOT NULL DEFAULT 'New',
    created INTEGER NOT NULL,
    created_epoch INTEGER NOT NULL,
    won INTEGER,
    UNIQUE (task, miner_id)
  ) STRICT;
  CREATE INDEX bids_of_provider ON bids (miner_id, created_epoch);
  CREATE TABLE mails (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    recipient TEXT NOT NULL,
    subject TEXT NOT NULL,
    text TEXT NOT NULL,
    created INTEGER NOT NULL,
    attempts INTEGER NOT NULL DEFAULT 0,
    state TEXT NOT NULL DEFAULT 'pending'
  ) STRICT;
  CREATE INDEX mails_pending ON mails (id) WHERE state = 'pending';
`

/**
 * The import of CARs: `sent` is 1 for deals that the network knows, which `sent_deals` counts per task. `due` is also
 * the epoch at which an embedded provider goes on with the import of a CAR that it has.
 */
export const importSchema = `
  ALTER TABLE deals ADD COLUMN sent INTEGER NOT NULL DEFAULT 0;
  ALTER TABLE tasks ADD COLUMN sent_deals INTEGER NOT NULL DEFAULT 0;
  DROP INDEX deals_due;
  UPDATE deals SET due = 0 WHERE status = 'ReadyForImport' AND stored IS NOT NULL;
  CREATE INDEX deals_downloaded ON deals (due) WHERE due IS NOT NULL AND status = 'Downloaded';
  CREATE INDEX deals_to_import ON deals (due, id)
    WHERE due IS NOT NULL AND stored IS NOT NULL AND status IN ('ReadyForImport', 'FileImporting', 'FileImported');
`

/** `assignment` is the digest of the request by which the poster of a task named its provider; null if none did. */
export const assignmentSchema = 'ALTER TABLE tasks ADD COLUMN assignment TEXT'

/** An index that both engines use for states in any case. */
export const stateIndexSchema = `
  DROP INDEX deals_by_status;
  CREATE INDEX deals_by_state ON deals (task, lower(status), id);
`
