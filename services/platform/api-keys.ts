import { createHash, timingSafeEqual } from 'node:crypto'
import { HttpError } from '../http/errors.js'
import { tableOf } from '../store/database.js'

/** Most keys of one user. */
const MAX_KEYS = 1000

/** An API key, and the secret that its user gets once. */
export interface NewApiKey {
  /** 32 hex digits. Hex has no `i`, so that the text never has `fail`: clients take a reply with that for a failure. */
  readonly apikey: string
  /** 64 hex digits, 256 random bits. */
  readonly secret: string
}

export interface ListedApiKey {
  readonly apikey: string
  readonly name: string
  /** Unix seconds. */
  readonly created: number
}

/** The table of API keys. Call writing methods inside a transaction. */
export class ApiKeys extends tableOf({
  byKey: 'SELECT "user", secret_hash AS hash FROM api_keys WHERE apikey = ?',
  count: 'SELECT count(*) AS count FROM api_keys WHERE "user" = ?',
  add: 'INSERT INTO api_keys (apikey, "user", key_name, secret_hash, created) VALUES (?, ?, ?, ?, ?)',
  ofUser: 'SELECT apikey, key_name AS name, created FROM api_keys WHERE "user" = ? ORDER BY created, apikey',
  remove: 'DELETE FROM api_keys WHERE apikey = ? AND "user" = ?',
}) {
  ofUser(user: number): Promise<readonly ListedApiKey[]> {
    return this.sql.ofUser.all<ListedApiKey>(user)
  }

  /** Removes a key of the user, whose JWTs are not valid any more. Returns false when the user has no such key. */
  async remove(apikey: string, user: number): Promise<boolean> {
    return (await this.sql.remove.run(apikey, user)) > 0
  }

  /** Id of the user; undefined when there is no such key. */
  async userOf(apikey: string): Promise<number | undefined> {
    return (await this.sql.byKey.get<{ user: number }>(apikey))?.user
  }

  async isSecretOf(apikey: string, secret: string): Promise<boolean> {
    const known = (await this.sql.byKey.get<{ hash: Uint8Array }>(apikey))?.hash
    return known !== undefined && timingSafeEqual(known, hashOf(secret))
  }

  /**
   * Adds a key. Throws HttpError 409 when the user has too many.
   * @param created Unix seconds
   */
  async add({ apikey, secret }: NewApiKey, user: number, name: string, created: number): Promise<void> {
    const { count = 0 } = (await this.sql.count.get<{ count: number }>(user)) ?? {}
    if (count >= MAX_KEYS) throw new HttpError(409, `A user has at most ${MAX_KEYS} API keys.`)
    await this.sql.add.run(apikey, user, name, hashOf(secret), created)
  }
}

function hashOf(secret: string): Buffer {
  return createHash('sha256').update(secret).digest()
}

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
