import { createHash } from 'node:crypto'
import { actorOf, requireToken, signedIdentity } from 'dealgate/paid'
import { defineCall, type Identity, networkOf, repeatable, unrepeatable } from 'dealgate/plugin'
import { z } from 'zod'
import type { TaskDeps } from '../deps.js'
import { acting, issueJwt, issueKey, type Login, signIn, TOKEN } from '../sign-in.js'
import { SOURCE } from './send.js'

const secret = z.string().min(1).max(1024)

const store = z
  .boolean()
  .optional()
  .describe('Keep the log-in, encrypted, for later calls of this access key, and leave secrets out of the answer.')

export function createPlatformSession(deps: TaskDeps) {
  return defineCall({
    name: 'CreatePlatformSession',
    source: SOURCE,
    summary: 'Signs in to the task platform.',
    access: 'signed',
    on: { method: 'POST', resource: 'service', path: '/-/task/v1/session' },
    body: z.strictObject({ Email: secret, Password: secret, Store: store }),
    result: z.object({
      AuthToken: z.string().optional().describe('JWT of the sign-in; absent with Store.'),
      Message: z.string(),
      Stored: z.boolean(),
    }),
    async answer({ body: { Email, Password, Store = false } }, context) {
      const identity = signedIdentity(context)
      const login = { email: Email, password: Password }
      const { token, message } = await attempt(
        deps,
        identity.accessKeyId,
        () => signIn(deps.client, deps.options.names, login),
        'The task platform refuses this e-mail address and password.',
      )
      if (!Store) return { AuthToken: token, Message: message, Stored: false }
      await keep(deps, identity, { signIn: login })
      return { Message: message, Stored: true }
    },
  })
}

/** For programs that have no key pair yet, such as a page for browsers: the token becomes temporary credentials. */
export function signInUser(deps: TaskDeps) {
  return defineCall({
    name: 'SignIn',
    source: SOURCE,
    summary: 'Exchanges the e-mail address and password of a user of the task platform for a JWT, without a signature.',
    access: 'public',
    ownRules: true,
    on: { method: 'POST', resource: 'service', path: '/-/task/v1/sign-in' },
    body: z.strictObject({ Email: secret, Password: secret }),
    result: z.object({ AuthToken: z.string().describe('JWT, for AssumeRoleWithWebIdentity.') }),
    async answer({ request, body: { Email, Password } }) {
      const network = networkOf(request.remoteAddress)
      const login = { email: Email, password: Password }
      const user = `${network} ${createHash('sha256').update(Email.trim().toLowerCase()).digest('hex')}`
      // A network that has a password of its own does not get more attempts at those of others.
      const { token } = await attempt(
        deps,
        user,
        () => deps.attempts.run(network, () => signIn(deps.client, deps.options.names, login, request.remoteAddress)),
        'The task platform refuses this e-mail address and password.',
      )
      return { AuthToken: token }
    },
  })
}

export function createApiKey(deps: TaskDeps) {
  return defineCall({
    name: 'CreateApiKey',
    source: SOURCE,
    summary: 'Makes an API key of the task platform, with the stored sign-in.',
    access: 'bearer',
    on: { method: 'POST', resource: 'service', path: '/-/task/v1/api-keys' },
    body: z.strictObject({
      KeyName: z.string().min(1).max(128),
      Extra: z.record(z.string(), z.string()).optional().describe('Further fields for the platform.'),
      Store: store,
    }),
    result: z.object({
      AccessToken: z.string().optional().describe('Secret of the key, shown this once; absent with Store.'),
      ApiKey: z.string(),
      CreatedOn: z.string(),
      Jwt: z.string().optional(),
      KeyName: z.string(),
      Status: z.string(),
      Stored: z.boolean(),
    }),
    async answer({ request, body: { KeyName, Extra = {}, Store = false } }, context) {
      const identity = Store ? signedIdentity(context) : undefined
      const key = { name: KeyName, extra: Extra }
      const made = await acting(deps, actorOf(context, request, TOKEN), 'sign-in', (token) =>
        issueKey(deps.client, deps.options.names, key, token ?? ''),
      ).catch((error) => {
        throw unrepeatable(error)
      })
      const { apikey, access_token: accessToken, created_on, jwt, key_name, status } = made
      const shown = { ApiKey: apikey, CreatedOn: created_on, KeyName: key_name || KeyName, Status: status }
      if (!identity) return { ...shown, AccessToken: accessToken, ...(jwt !== '' && { Jwt: jwt }), Stored: false }
      await keep(deps, identity, { apiKey: { apikey, accessToken } })
      return { ...shown, Stored: true }
    },
  })
}

export function createJwt(deps: TaskDeps) {
  return defineCall({
    name: 'CreateJwt',
    source: SOURCE,
    summary: 'Gets a JWT for an API key of the task platform.',
    access: 'signed',
    on: { method: 'POST', resource: 'service', path: '/-/task/v1/api-keys/jwt' },
    body: z.strictObject({ ApiKey: secret, AccessToken: secret, Store: store }),
    result: z.object({
      ApiKey: z.string(),
      Jwt: z.string().optional().describe('Absent with Store.'),
      Stored: z.boolean(),
    }),
    async answer({ body: { ApiKey, AccessToken, Store = false } }, context) {
      const identity = signedIdentity(context)
      const login = { apikey: ApiKey, accessToken: AccessToken }
      const jwt = await attempt(
        deps,
        identity.accessKeyId,
        () => issueJwt(deps.client, deps.options.names, login),
        'The task platform refuses this API key and its secret.',
      )
      if (!Store) return { ApiKey, Jwt: jwt, Stored: false }
      await keep(deps, identity, { apiKey: login })
      return { ApiKey, Stored: true }
    },
  })
}

/** Runs a sign-in of a key pair or network. A refused one is UpstreamAuthFailed with this message. */
function attempt<T>({ attempts }: TaskDeps, who: string, run: () => Promise<T>, refused: string): Promise<T> {
  return requireToken(() => attempts.run(who, run), refused).catch((error) => {
    throw repeatable(error)
  })
}

/** Adds to the log-in of the identity. Durable when it resolves. Throws S3Error if secrets cannot be sealed here. */
async function keep({ logins, tokens }: TaskDeps, identity: Identity, part: Login): Promise<void> {
  await logins.set(identity, { ...(await logins.get(identity)), ...part })
  tokens.drop(identity)
}
