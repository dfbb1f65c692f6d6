/**
 * API keys of users. `secret_hash` is the SHA-256 of the secret: it has 256 random bits, which no guesser tries out, so
 * that it needs no slow hash as a password does. Times are Unix seconds.
 */
export const apiKeySchema = `
  CREATE TABLE api_keys (
    apikey TEXT PRIMARY KEY,
    user INTEGER NOT NULL REFERENCES users (id),
    key_name TEXT NOT NULL,
    secret_hash BLOB NOT NULL,
    created INTEGER NOT NULL
  ) STRICT;
  CREATE INDEX api_keys_of_user ON api_keys (user);
`
