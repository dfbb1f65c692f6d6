/**
 * The embedded ledger: transfers of double-entry rows between accounts. Amounts are in millionths of a stable coin. The
 * account `issued` holds what was brought into circulation, as a negative amount, so that all balances together are
 * zero; no other account can be negative. `wallet <address>` and `lock <w_cid>` are further accounts, and `earned`.
 *
 * `locks` holds one payment per upload, and what became of it. Times are Unix seconds, epochs those of the network.
 */
export const ledgerSchema = `
  CREATE TABLE accounts (
    name TEXT PRIMARY KEY,
    balance INTEGER NOT NULL,
    CHECK (balance >= 0 OR name = 'issued')
  ) STRICT;
  CREATE TABLE transfers (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    reference TEXT NOT NULL UNIQUE,
    hash TEXT NOT NULL UNIQUE,
    created INTEGER NOT NULL
  ) STRICT;
  CREATE TABLE entries (
    transfer INTEGER NOT NULL REFERENCES transfers (id),
    account TEXT NOT NULL REFERENCES accounts (name),
    amount INTEGER NOT NULL,
    PRIMARY KEY (transfer, account)
  ) STRICT, WITHOUT ROWID;
  CREATE TABLE locks (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    w_cid TEXT NOT NULL UNIQUE,
    wallet TEXT NOT NULL,
    amount INTEGER NOT NULL,
    hash TEXT NOT NULL,
    paid_at INTEGER NOT NULL,
    deadline INTEGER NOT NULL,
    deadline_epoch INTEGER NOT NULL,
    unlocked INTEGER NOT NULL DEFAULT 0,
    unlocked_at INTEGER NOT NULL DEFAULT 0,
    refunded INTEGER NOT NULL DEFAULT 0,
    is_open INTEGER NOT NULL DEFAULT 1
  ) STRICT;
  CREATE INDEX locks_of_wallet ON locks (wallet, id);
`

/** Amounts of payments as decimal texts: tokens with 18 decimals have larger ones than 64 bits hold. */
export const exactLockSchema = `
  CREATE TABLE exact_locks (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    w_cid TEXT NOT NULL UNIQUE,
    wallet TEXT NOT NULL,
    amount TEXT NOT NULL,
    hash TEXT NOT NULL,
    paid_at INTEGER NOT NULL,
    deadline INTEGER NOT NULL,
    deadline_epoch INTEGER NOT NULL,
    unlocked TEXT NOT NULL DEFAULT '0',
    unlocked_at INTEGER NOT NULL DEFAULT 0,
    refunded TEXT NOT NULL DEFAULT '0',
    is_open INTEGER NOT NULL DEFAULT 1
  ) STRICT;
  INSERT INTO exact_locks SELECT id, w_cid, wallet, CAST(amount AS TEXT), hash, paid_at, deadline, deadline_epoch,
    CAST(unlocked AS TEXT), unlocked_at, CAST(refunded AS TEXT), is_open FROM locks;
  DROP TABLE locks;
  ALTER TABLE exact_locks RENAME TO locks;
  CREATE INDEX locks_of_wallet ON locks (wallet, id);
  ALTER TABLE chain ADD COLUMN decimals INTEGER;
`
