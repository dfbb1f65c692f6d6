import {
  actorOf,
  type Context,
  defineCall,
  type Identity,
  repeatable,
  S3Error,
  TokenRefused,
  unrepeatable,
} from 'dealgate'
import { z } from 'zod'
import { acting, TOKEN } from '../acting.js'
import { issueJwt, issueKey, signIn } from '../login.js'
import type { TaskParts } from '../parts.js'
import { SOURCE } from './send.js'

/** Most characters of a secret that a client states. */
const secret = z.string().min(1).max(1024)

const store = z
  .boolean()
  .optional()
  .describe('Keep the log-in, encrypted, for later calls of this access key, and leave secrets out of the answer.')

export function createPlatformSession(parts: TaskParts) {
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
      const identity = identityOf(context)
      const login = { email: Email, password: Password }
      const { token, message } = await parts.attempts
        .run(identity.accessKeyId, () => signIn(parts.client, parts.options.names, login))
        .catch((error) => {
          throw refusedOr(repeatable(error), 'The task platform refuses this e-mail address and password.')
        })
      if (!Store) return { AuthToken: token, Message: message, Stored: false }
      await parts.logins.add(identity, { signIn: login })
      parts.tokens.drop(identity)
      return { Message: message, Stored: true }
    },
  })
}

export function createApiKey(parts: TaskParts) {
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
      const identity = Store ? identityOf(context) : undefined
      const key = { name: KeyName, extra: Extra }
      const made = await acting(parts, actorOf(context, request, TOKEN), 'sign-in', (token) =>
        issueKey(parts.client, parts.options.names, key, token ?? ''),
      ).catch((error) => {
        throw unrepeatable(error)
      })
      const { apikey, access_token: accessToken, created_on, jwt, key_name, status } = made
      const shown = { ApiKey: apikey, CreatedOn: created_on, KeyName: key_name || KeyName, Status: status }
      if (!identity) return { ...shown, AccessToken: accessToken, ...(jwt !== '' && { Jwt: jwt }), Stored: false }
      await parts.logins.add(identity, { apiKey: { apikey, accessToken } })
      parts.tokens.drop(identity)
      return { ...shown, Stored: true }
    },
  })
}

export function createJwt(parts: TaskParts) {
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
      const identity = identityOf(context)
      const login = { apikey: ApiKey, accessToken: AccessToken }
      const jwt = await parts.attempts
        .run(identity.accessKeyId, () => issueJwt(parts.client, parts.options.names, login))
        .catch((error) => {
          throw refusedOr(repeatable(error), 'The task platform refuses this API key and its secret.')
        })
      if (!Store) return { ApiKey, Jwt: jwt, Stored: false }
      await parts.logins.add(identity, { apiKey: login })
      parts.tokens.drop(identity)
      return { ApiKey, Stored: true }
    },
  })
}

function identityOf({ caller }: Pick<Context, 'caller'>): Identity {
  if (caller) return caller.identity
  throw new S3Error('AccessDenied', { message: 'Only a signed request can do this.' })
}

function refusedOr(error: unknown, message: string): unknown {
  return error instanceof TokenRefused ? new S3Error('UpstreamAuthFailed', { message, cause: error }) : error
}
