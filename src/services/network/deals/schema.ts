import type { Database } from '../../database.js'

/**
 * The deals of a network. A deal with `waiting` has been proposed, and its data reach the provider in another way; it
 * has neither custody nor schedule until then. `active_epoch` is null for deals of earlier versions, which became
 * active at their start.
 */
export const dealSchema = `
  CREATE TABLE IF NOT EXISTS deals (
    reference TEXT PRIMARY KEY,
    deal_cid TEXT NOT NULL UNIQUE,
    miner_id TEXT NOT NULL,
    price TEXT NOT NULL,
    duration INTEGER NOT NULL,
    verified_deal INTEGER NOT NULL,
    fast_retrieval INTEGER NOT NULL,
    wallet_address TEXT NOT NULL,
    data_cid TEXT NOT NULL,
    piece_cid TEXT NOT NULL,
    piece_size INTEGER NOT NULL,
    car_size INTEGER NOT NULL,
    time_stamp INTEGER NOT NULL,
    proposed_epoch INTEGER NOT NULL,
    accept_epoch INTEGER NOT NULL,
    seal_epoch INTEGER NOT NULL,
    start_epoch INTEGER NOT NULL,
    end_epoch INTEGER NOT NULL,
    proposal BLOB NOT NULL,
    rejection TEXT,
    custody TEXT,
    waiting INTEGER NOT NULL DEFAULT 0,
    active_epoch INTEGER
  ) STRICT;
  CREATE INDEX IF NOT EXISTS deals_in_custody ON deals (custody) WHERE custody IS NOT NULL;
  CREATE INDEX IF NOT EXISTS deals_in_sums ON deals (miner_id, verified_deal, custody IS NOT NULL, price, piece_size)
    WHERE waiting = 0;
  CREATE INDEX IF NOT EXISTS deals_waiting ON deals (miner_id, piece_cid) WHERE waiting = 1;
  CREATE INDEX IF NOT EXISTS deals_by_end ON deals (end_epoch) WHERE custody IS NOT NULL;
`

/** Adapts the deals of earlier versions, none of which waited for its data. */
export function adaptDeals(db: Database): void {
  const columns = db.prepare('PRAGMA table_info(deals)').all()
  if (columns.length === 0 || columns.some(({ name }) => name === 'waiting')) return
  db.exec(`
    BEGIN IMMEDIATE;
    ALTER TABLE deals ADD COLUMN waiting INTEGER NOT NULL DEFAULT 0;
    ALTER TABLE deals ADD COLUMN active_epoch INTEGER;
    DROP INDEX IF EXISTS deals_in_sums;
    COMMIT;
  `)
}
