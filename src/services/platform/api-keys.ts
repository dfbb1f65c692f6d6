import { createHash, randomBytes, timingSafeEqual } from 'node:crypto'
import type { Database } from '../database.js'
import { PlatformError } from './errors.js'
import { readFields } from './http/body.js'
import type { Exchange } from './http/route.js'
import { callerOf, requireUser } from './sign-in.js'

/** Most keys of one user. */
const MOST = 1000

/** An API key, and the secret that its user gets once. */
interface NewApiKey {
  /** 32 hex digits. Hex has no `i`, so that the text never has `fail`: clients take a reply with that for a failure. */
  readonly apikey: string
  /** 64 hex digits, 256 random bits. */
  readonly secret: string
}

/** An API key as its user sees it later. */
export interface ListedApiKey {
  readonly apikey: string
  readonly name: string
  /** Unix seconds. */
  readonly created: number
}

/** The table of API keys. Call writing methods inside a transaction. */
export class ApiKeys {
  readonly #byKey
  readonly #count
  readonly #add
  readonly #ofUser
  readonly #remove

  constructor(db: Database) {
    this.#byKey = db.prepare('SELECT user, secret_hash AS hash FROM api_keys WHERE apikey = ?')
    this.#count = db.prepare('SELECT count(*) AS count FROM api_keys WHERE user = ?')
    this.#add = db.prepare('INSERT INTO api_keys (apikey, user, key_name, secret_hash, created) VALUES (?, ?, ?, ?, ?)')
    this.#ofUser = db.prepare(
      'SELECT apikey, key_name AS name, created FROM api_keys WHERE user = ? ORDER BY created, apikey',
    )
    this.#remove = db.prepare('DELETE FROM api_keys WHERE apikey = ? AND user = ?')
  }

  /** In the order of their age. */
  ofUser(user: number): readonly ListedApiKey[] {
    return this.#ofUser.all(user) as ListedApiKey[]
  }

  /** Removes a key of the user, whose JWTs are not valid any more. Returns false when the user has no such key. */
  remove(apikey: string, user: number): boolean {
    return Number(this.#remove.run(apikey, user).changes) > 0
  }

  /** Id of the user; undefined when there is no such key. */
  userOf(apikey: string): number | undefined {
    return this.#byKey.get(apikey)?.user as number | undefined
  }

  isSecretOf(apikey: string, secret: string): boolean {
    const known = this.#byKey.get(apikey)?.hash as Uint8Array | undefined
    return known !== undefined && timingSafeEqual(known, hashOf(secret))
  }

  /**
   * Adds a key. Throws PlatformError 409 when the user has too many.
   * @param created Unix seconds
   */
  add({ apikey, secret }: NewApiKey, user: number, name: string, created: number): void {
    if (this.#count.get(user).count >= MOST) throw new PlatformError(409, `A user has at most ${MOST} API keys.`)
    this.#add.run(apikey, user, name, hashOf(secret), created)
  }
}

function newApiKey(): NewApiKey {
  return { apikey: randomBytes(16).toString('hex'), secret: randomBytes(32).toString('hex') }
}

function hashOf(secret: string): Buffer {
  return createHash('sha256').update(secret).digest()
}

const LONGEST_NAME = 128

/**
 * POST /user/api_keys/jwt: two calls, told apart by the body. `key_name` with the JWT of a sign-in makes an API key;
 * `apikey` and `access_token`, its secret, get a JWT, without regard to the Authorization header.
 */
export async function issueKeyOrJwt(exchange: Exchange): Promise<object> {
  const fields = await readFields(exchange)
  const forJwt = fields.has('apikey') || fields.has('access_token')
  if (forJwt && fields.has('key_name')) {
    throw new PlatformError(400, 'Send key_name for an API key, or apikey and access_token for a JWT, not both.')
  }
  if (forJwt) return issueJwt(exchange, fields.required('apikey'), fields.required('access_token'))
  return issueKey({ ...exchange, caller: await callerOf(exchange, 'signed-in') }, fields.required('key_name'))
}

async function issueKey(exchange: Exchange, name: string): Promise<object> {
  if (name.length > LONGEST_NAME) {
    throw new PlatformError(400, `The name of a key has at most ${LONGEST_NAME} characters.`)
  }
  const user = requireUser(exchange)
  const { apiKeys, writer, tokens, seconds } = exchange.context
  const made = newApiKey()
  const created = seconds()
  await writer.run(() => apiKeys.add(made, user.id, name, created))
  const record = {
    access_token: made.secret,
    apikey: made.apikey,
    created_on: String(created),
    jwt: await tokens.ofApiKey(made.apikey),
    key_name: name,
    status: 'Created',
  }
  return { auth_token: record, message: 'The secret and the JWT are shown this once: keep them.' }
}

async function issueJwt({ context }: Exchange, apikey: string, secret: string): Promise<object> {
  const { apiKeys, tokens } = context
  // The texts are those that clients know.
  if (apiKeys.userOf(apikey) === undefined) throw new PlatformError(401, 'api_key Not found')
  if (!apiKeys.isSecretOf(apikey, secret)) throw new PlatformError(401, 'Please provide a valid api token.')
  return { data: { api_key: apikey, jwt: await tokens.ofApiKey(apikey) } }
}

/** GET /user/api_keys: the keys of the caller, without their secrets. */
export function listKeys(exchange: Exchange): object {
  const keys = exchange.context.apiKeys.ofUser(requireUser(exchange).id)
  const records = keys.map(({ apikey, name, created }) => ({
    apikey,
    created_on: String(created),
    key_name: name,
    status: 'Created',
  }))
  return { data: { api_keys: records } }
}

/** The account has one key pair, with which programs may store objects: a revocation does not change it. */
const STAYS_VALID =
  'The API key and its JWTs are not valid any more, and sessions that were made with them end. The key pair that the ' +
  'gateway hands out for such a JWT belongs to the account and stays valid: if another party may have it, replace its ' +
  'secret key by web.SetAuth or with `dealgate account rotate`.'

/** POST /user/api_keys/revoke: removes the key `apikey` of the caller, and with it the JWTs that were issued for it. */
export async function revokeKey(exchange: Exchange): Promise<object> {
  const user = requireUser(exchange)
  const apikey = (await readFields(exchange)).required('apikey')
  const { apiKeys, writer } = exchange.context
  const removed = await writer.run(() => apiKeys.remove(apikey, user.id))
  if (!removed) throw new PlatformError(404, 'You have no such API key.')
  return { data: { apikey, status: 'Revoked' }, message: STAYS_VALID }
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
