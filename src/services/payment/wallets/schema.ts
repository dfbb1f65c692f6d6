/**
 * The wallets that signed in or were named, by address in lower case. `used_nonces` holds those that opened a session,
 * until they expire. `settings` holds what the service makes at its first start. Times are Unix seconds.
 */
export const walletSchema = `
  CREATE TABLE settings (
    name TEXT PRIMARY KEY,
    value BLOB NOT NULL
  ) STRICT;
  CREATE TABLE wallets (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    address TEXT NOT NULL UNIQUE,
    created INTEGER NOT NULL
  ) STRICT;
  CREATE TABLE used_nonces (
    nonce TEXT PRIMARY KEY,
    expires INTEGER NOT NULL
  ) STRICT;
  CREATE INDEX nonces_by_expiry ON used_nonces (expires);
`

/** `signed_in` is the time of the last sign-in: a wallet that has nothing is forgotten when its tokens have expired. */
export const signInSchema = `
  ALTER TABLE wallets ADD COLUMN signed_in INTEGER NOT NULL DEFAULT 0;
  UPDATE wallets SET signed_in = unixepoch();
  CREATE INDEX wallets_by_creation ON wallets (created);
`
