/**
 * What becomes of paid uploads: several of them are packed into one CAR, of which a task of the task platform makes
 * offline deals. An upload keeps the least amount that it costs, in millionths of a stable coin. `deal_id` is that of
 * the network. Prices are attofil. Times are Unix seconds, epochs those of the network.
 */
export const dealSchema = `
  CREATE TABLE cars (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    payload_cid TEXT NOT NULL,
    size INTEGER NOT NULL,
    task TEXT,
    status TEXT NOT NULL DEFAULT 'TaskCreated',
    created INTEGER NOT NULL,
    created_epoch INTEGER NOT NULL
  ) STRICT;
  CREATE TABLE offline_deals (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    car INTEGER NOT NULL REFERENCES cars (id),
    deal_id INTEGER NOT NULL,
    deal_cid TEXT NOT NULL UNIQUE,
    piece_cid TEXT NOT NULL,
    piece_size INTEGER NOT NULL,
    miner_fid TEXT NOT NULL,
    client TEXT NOT NULL,
    verified INTEGER NOT NULL,
    price TEXT NOT NULL,
    start_epoch INTEGER NOT NULL,
    end_epoch INTEGER NOT NULL,
    status TEXT NOT NULL DEFAULT 'Created',
    on_chain_status TEXT NOT NULL,
    note TEXT,
    unlock_hash TEXT,
    unlocked_at INTEGER NOT NULL DEFAULT 0,
    created INTEGER NOT NULL,
    updated INTEGER NOT NULL
  ) STRICT;
  CREATE INDEX deals_of_car ON offline_deals (car, id);
  CREATE TABLE deal_logs (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    deal INTEGER NOT NULL REFERENCES offline_deals (id),
    on_chain_status TEXT NOT NULL,
    message TEXT NOT NULL,
    created INTEGER NOT NULL,
    UNIQUE (deal, on_chain_status, message)
  ) STRICT;
  CREATE TABLE mints (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    upload INTEGER NOT NULL UNIQUE REFERENCES uploads (id),
    tx_hash TEXT NOT NULL,
    mint_address TEXT NOT NULL,
    token_id TEXT NOT NULL,
    created INTEGER NOT NULL,
    updated INTEGER NOT NULL
  ) STRICT;
  ALTER TABLE uploads ADD COLUMN price INTEGER NOT NULL DEFAULT 1;
  ALTER TABLE uploads ADD COLUMN car INTEGER REFERENCES cars (id);
  CREATE INDEX uploads_by_status ON uploads (status, id);
  CREATE INDEX uploads_of_car ON uploads (car, wallet) WHERE car IS NOT NULL;
  CREATE INDEX open_locks ON locks (deadline_epoch) WHERE is_open = 1;
`
