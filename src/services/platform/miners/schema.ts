/**
 * How the owner of a storage provider wants it to bid: rows of those that have said so. What the network knows of a
 * provider is not here. `updated` is in Unix seconds.
 */
export const minerSchema = `
  CREATE TABLE miners (
    miner_id TEXT PRIMARY KEY,
    bid_mode INTEGER NOT NULL,
    expected_sealing_time INTEGER NOT NULL,
    start_epoch INTEGER NOT NULL,
    auto_bid_task_per_day INTEGER NOT NULL,
    updated INTEGER NOT NULL
  ) STRICT;
`
