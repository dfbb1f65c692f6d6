import { z } from 'zod'
import type { Account } from '../accounts/accounts.js'
import { isSamePair, type KeyPair, MIN_ACCESS_KEY, MIN_SECRET_KEY } from '../accounts/key-pair.js'
import type { GatewayContext } from '../context.js'
import { GatewayError } from '../errors.js'
import { defineMethod, defineSignedMethod } from './method.js'
import { text } from './params.js'

export const login = defineMethod({
  name: 'web.Login',
  access: 'public',
  params: z.object({ username: text, password: text }),
  async run({ username, password }, { context, client }) {
    const pair = { accessKey: username, secretKey: password }
    const account = context.logIns.attempt(client, username, () => mustLogIn(context, pair))
    return { token: await context.tokens.login(account) }
  },
})

export const createUrlToken = defineSignedMethod({
  name: 'web.CreateURLToken',
  params: z.object({}),
  run: async (_, { context, account }) => ({ token: await context.tokens.url(account) }),
})

/**
 * Replaces the keys of the caller's account; of an account other than the first one only the secret key, whatever new
 * access key is given (MinIO cmd/web-handlers.go, `SetAuth`). All tokens issued before become invalid.
 */
export const setAuth = defineSignedMethod({
  name: 'web.SetAuth',
  params: z.object({ currentAccessKey: text, currentSecretKey: text, newAccessKey: text, newSecretKey: text }),
  async run({ currentAccessKey, currentSecretKey, newAccessKey, newSecretKey }, { context, client, account }) {
    const current = { accessKey: currentAccessKey, secretKey: currentSecretKey }
    context.logIns.attempt(client, account.accessKey, () => {
      if (!isSamePair(current, account)) throw new GatewayError('WrongCurrentKeys')
    })
    const accessKey = account.isIamUser ? account.accessKey : newAccessKey
    const changed = await context.writer.run(() =>
      context.accounts.rotate(account.id, current, { accessKey, secretKey: newSecretKey }),
    )
    return { token: await context.tokens.login(changed), peerErrMsgs: null }
  },
})

/** Throws GatewayError unless an account has this pair. Work and error are the same whichever key is wrong. */
function mustLogIn({ accounts, quirks }: GatewayContext, pair: KeyPair): Account {
  const account = accounts.withKeys(pair)
  if (account !== undefined) return account
  if (quirks.has('telling-log-ins')) {
    if (pair.accessKey.length < MIN_ACCESS_KEY) throw new GatewayError('ShortAccessKey')
    if (pair.secretKey.length < MIN_SECRET_KEY) throw new GatewayError('ShortSecretKey')
    if (accounts.find(pair.accessKey) === undefined) throw new GatewayError('UnknownAccessKey')
  }
  throw new GatewayError('Authentication')
}
