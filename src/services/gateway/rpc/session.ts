import { z } from 'zod'
import { defineMethod } from './method.js'
import { text } from './params.js'

export const login = defineMethod({
  name: 'web.Login',
  access: 'public',
  params: z.object({ username: text, password: text }),
  async run({ username, password }, { context }) {
    context.account.check({ accessKey: username, secretKey: password })
    return { token: await context.tokens.login() }
  },
})

export const createUrlToken = defineMethod({
  name: 'web.CreateURLToken',
  access: 'signed',
  params: z.object({}),
  run: async (_, { context }) => ({ token: await context.tokens.url() }),
})

/** Changes both keys of the owner's pair. All tokens issued before die. */
export const setAuth = defineMethod({
  name: 'web.SetAuth',
  access: 'signed',
  params: z.object({ currentAccessKey: text, currentSecretKey: text, newAccessKey: text, newSecretKey: text }),
  async run({ currentAccessKey, currentSecretKey, newAccessKey, newSecretKey }, { context }) {
    context.account.rotate(
      { accessKey: currentAccessKey, secretKey: currentSecretKey },
      { accessKey: newAccessKey, secretKey: newSecretKey },
    )
    return { token: await context.tokens.login(), peerErrMsgs: null }
  },
})
