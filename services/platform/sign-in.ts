import { randomBytes } from 'node:crypto'
import { HttpError } from '../http/errors.js'
import { clientOf } from '../http/server.js'
import type { NewApiKey } from './api-keys.js'
import { callerOf, type PlatformExchange, readFields, requireUser } from './exchange.js'
import { impossibleHash, isPassword } from './password.js'

/** An unknown e-mail address is checked against it, which takes as long as a wrong password. */
const NO_HASH = impossibleHash()

/** Bounds the work for one hash. */
const MAX_PASSWORD = 1024

/** POST /auth/login: `email` and `password` for a JWT, valid for a day. */
export async function logIn(exchange: PlatformExchange): Promise<object> {
  const { context, request } = exchange
  const fields = await readFields(exchange)
  const email = fields.required('email').trim()
  const password = fields.required('password')
  if (password.length > MAX_PASSWORD) {
    throw new HttpError(400, `A password has at most ${MAX_PASSWORD} characters.`)
  }
  const user = await context.attempts.attempt(clientOf(request), email, async () => {
    const known = await context.db.read.users.find(email)
    const right = await isPassword(known?.password ?? NO_HASH, password)
    return right ? known : undefined
  })
  if (user === undefined) throw new HttpError(401, 'The e-mail address or the password is wrong.')
  return { auth_token: await context.tokens.ofSignIn(user), message: 'Signed in.' }
}

function newApiKey(): NewApiKey {
  return { apikey: randomBytes(16).toString('hex'), secret: randomBytes(32).toString('hex') }
}

const MAX_NAME = 128

/**
 * POST /user/api_keys/jwt: two calls, which differ in the body. `key_name` with the JWT of a sign-in makes an API key;
 * `apikey` and `access_token`, its secret, get a JWT, without regard to the Authorization header.
 */
export async function issueKeyOrJwt(exchange: PlatformExchange): Promise<object> {
  const fields = await readFields(exchange)
  const forJwt = fields.has('apikey') || fields.has('access_token')
  if (forJwt && fields.has('key_name')) {
    throw new HttpError(400, 'Send key_name for an API key, or apikey and access_token for a JWT, not both.')
  }
  if (forJwt) return issueJwt(exchange, fields.required('apikey'), fields.required('access_token'))
  return issueKey({ ...exchange, caller: await callerOf(exchange, 'signed-in') }, fields.required('key_name'))
}

async function issueKey(exchange: PlatformExchange, name: string): Promise<object> {
  if (name.length > MAX_NAME) {
    throw new HttpError(400, `The name of a key has at most ${MAX_NAME} characters.`)
  }
  const user = requireUser(exchange)
  const { db, tokens, seconds } = exchange.context
  const made = newApiKey()
  const created = seconds()
  await db.transaction(({ apiKeys }) => apiKeys.add(made, user.id, name, created))
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

async function issueJwt({ context }: PlatformExchange, apikey: string, secret: string): Promise<object> {
  const { db, tokens } = context
  const { apiKeys } = db.read
  // The texts are those that clients know.
  if ((await apiKeys.userOf(apikey)) === undefined) throw new HttpError(401, 'api_key Not found')
  if (!(await apiKeys.isSecretOf(apikey, secret))) throw new HttpError(401, 'Please provide a valid api token.')
  return { data: { api_key: apikey, jwt: await tokens.ofApiKey(apikey) } }
}

export async function listKeys(exchange: PlatformExchange): Promise<object> {
  const keys = await exchange.context.db.read.apiKeys.ofUser(requireUser(exchange).id)
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
export async function revokeKey(exchange: PlatformExchange): Promise<object> {
  const user = requireUser(exchange)
  const apikey = (await readFields(exchange)).required('apikey')
  const removed = await exchange.context.db.transaction(({ apiKeys }) => apiKeys.remove(apikey, user.id))
  if (!removed) throw new HttpError(404, 'You have no such API key.')
  return { data: { apikey, status: 'Revoked' }, message: STAYS_VALID }
}
