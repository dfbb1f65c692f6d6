import { randomBytes } from 'node:crypto'
import { z } from 'zod'
import { HttpError } from '../../http/errors.js'
import { clientOf } from '../../http/server.js'
import { required } from '../../rest/schemas.js'
import type { NewApiKey } from '../api-keys.js'
import type { PlatformContext } from '../context.js'
import { impossibleHash, isPassword } from '../password.js'
import { callerOf, type PlatformRoute, route } from '../route.js'
import type { User } from '../users.js'

/** An unknown e-mail address is checked against it, which takes as long as a wrong password. */
const NO_HASH = impossibleHash()

/** Bounds the work for one hash. */
const MAX_PASSWORD = 1024

const logIn = route({
  method: 'POST',
  path: '/auth/login',
  access: 'public',
  summary: 'returns a JWT, valid for a day, for `email` and `password`',
  body: {
    email: missing('email').trim(),
    password: missing('password').max(MAX_PASSWORD, `A password has at most ${MAX_PASSWORD} characters.`),
  },
  answer: { auth_token: z.string().describe('A JWT.'), message: z.string() },
  async handle({ context, request, body }) {
    const { email, password } = await body()
    const user = await context.attempts.attempt(clientOf(request), email, async () => {
      const known = await context.db.read.users.find(email)
      const right = await isPassword(known?.password ?? NO_HASH, password)
      return right ? known : undefined
    })
    if (user === undefined) throw new HttpError(401, 'The e-mail address or the password is wrong.')
    return { auth_token: await context.tokens.ofSignIn(user), message: 'Signed in.' }
  },
})

/** A field that must not be absent or empty. */
function missing(name: string) {
  return required(`The field ${name} is missing.`)
}

function newApiKey(): NewApiKey {
  return { apikey: randomBytes(16).toString('hex'), secret: randomBytes(32).toString('hex') }
}

const MAX_NAME = 128

const issuedKey = z.object({
  access_token: z.string().describe('The secret of the key, which is shown this once.'),
  apikey: z.string(),
  created_on: z.string(),
  jwt: z.string(),
  key_name: z.string(),
  status: z.literal('Created'),
})

/** Who may call depends on the body, so the handler decides it. */
const issueKeyOrJwt = route({
  method: 'POST',
  path: '/user/api_keys/jwt',
  access: 'public',
  summary: 'makes an API key named `key_name`, or returns a JWT for `apikey` and `access_token`',
  body: {
    key_name: z.string().optional().describe('With the JWT of a sign-in, for a new API key.'),
    apikey: z.string().optional(),
    access_token: z.string().optional().describe('The secret of the API key.'),
  },
  answer: {
    auth_token: issuedKey.optional().describe('For key_name.'),
    data: z.object({ api_key: z.string(), jwt: z.string() }).optional().describe('For apikey and access_token.'),
    message: z.string().optional(),
  },
  async handle({ context, request, body }) {
    const { key_name, apikey, access_token } = await body()
    const forJwt = apikey !== undefined || access_token !== undefined
    if (forJwt && key_name !== undefined) {
      throw new HttpError(400, 'Send key_name for an API key, or apikey and access_token for a JWT, not both.')
    }
    if (forJwt) return issueJwt(context, present('apikey', apikey), present('access_token', access_token))
    const { user } = await callerOf(context, request, 'signed-in')
    return issueKey(context, user, present('key_name', key_name))
  },
})

/** Throws HttpError 400 for a text that is absent or empty. */
function present(name: string, text: string | undefined): string {
  if (text === undefined || text === '') throw new HttpError(400, `The field ${name} is missing.`)
  return text
}

async function issueKey({ db, tokens, seconds }: PlatformContext, { id }: User, name: string) {
  if (name.length > MAX_NAME) {
    throw new HttpError(400, `The name of a key has at most ${MAX_NAME} characters.`)
  }
  const made = newApiKey()
  const created = seconds()
  await db.transaction(({ apiKeys }) => apiKeys.add(made, id, name, created))
  const record = {
    access_token: made.secret,
    apikey: made.apikey,
    created_on: String(created),
    jwt: await tokens.ofApiKey(made.apikey),
    key_name: name,
    status: 'Created' as const,
  }
  return { auth_token: record, message: 'The secret and the JWT are shown this once: keep them.' }
}

async function issueJwt({ db, tokens }: PlatformContext, apikey: string, secret: string) {
  const { apiKeys } = db.read
  // The texts are those that clients know.
  if ((await apiKeys.userOf(apikey)) === undefined) throw new HttpError(401, 'api_key Not found')
  if (!(await apiKeys.isSecretOf(apikey, secret))) throw new HttpError(401, 'Please provide a valid api token.')
  return { data: { api_key: apikey, jwt: await tokens.ofApiKey(apikey) } }
}

const listKeys = route({
  method: 'GET',
  path: '/user/api_keys',
  access: 'signed-in',
  summary: 'lists the API keys of the caller, without their secrets',
  answer: {
    data: z.object({ api_keys: z.array(issuedKey.omit({ access_token: true, jwt: true })) }),
  },
  async handle({ context, caller }) {
    const keys = await context.db.read.apiKeys.ofUser(caller.user.id)
    const records = keys.map(({ apikey, name, created }) => ({
      apikey,
      created_on: String(created),
      key_name: name,
      status: 'Created' as const,
    }))
    return { data: { api_keys: records } }
  },
})

/** The account has one key pair, with which programs may store objects: a revocation does not change it. */
const STAYS_VALID =
  'The API key and its JWTs are not valid any more, and sessions that were made with them end. The key pair that the ' +
  'gateway hands out for such a JWT belongs to the account and stays valid: if another party may have it, replace its ' +
  'secret key by web.SetAuth or with `dealgate account rotate`.'

const revokeKey = route({
  method: 'POST',
  path: '/user/api_keys/revoke',
  access: 'signed-in',
  summary: 'removes the key `apikey` with the JWTs that were issued for it',
  body: { apikey: missing('apikey') },
  answer: { data: z.object({ apikey: z.string(), status: z.literal('Revoked') }), message: z.string() },
  async handle({ context, caller, body }) {
    const { apikey } = await body()
    const removed = await context.db.transaction(({ apiKeys }) => apiKeys.remove(apikey, caller.user.id))
    if (!removed) throw new HttpError(404, 'You have no such API key.')
    return { data: { apikey, status: 'Revoked' as const }, message: STAYS_VALID }
  },
})

/** How users sign in, and the API keys of their programs. */
export const signIn: readonly PlatformRoute[] = [logIn, issueKeyOrJwt, listKeys, revokeKey]
