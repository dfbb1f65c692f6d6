/** Adds the number of changes of the password: tokens of a sign-in name it, and die with the next change. */
export const passwordChangesSchema = `
  ALTER TABLE users ADD COLUMN password_changes INTEGER NOT NULL DEFAULT 0;
`

/**
 * Users sign in with an e-mail address, in lower case. `password` is an argon2id hash. `settings` holds what the
 * platform makes at its first start. Times are Unix seconds.
 */
export const userSchema = `
  CREATE TABLE users (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    email TEXT NOT NULL UNIQUE,
    password TEXT NOT NULL,
    registered INTEGER NOT NULL
  ) STRICT;
  CREATE TABLE settings (
    name TEXT PRIMARY KEY,
    value BLOB NOT NULL
  ) STRICT;
`
