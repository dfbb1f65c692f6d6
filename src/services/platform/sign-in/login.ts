import { clientOf } from '../../http/client-address.js'
import { PlatformError } from '../errors.js'
import { readFields } from '../http/body.js'
import type { Exchange } from '../http/exchange.js'
import { impossibleHash, isPassword } from '../users/password.js'

/** An unknown e-mail address is checked against it, which takes as long as a wrong password. */
const NO_HASH = impossibleHash()

/** Bounds the work for one hash. */
const LONGEST_PASSWORD = 1024

/** POST /auth/login: `email` and `password` for a JWT, valid for a day. */
export async function logIn(exchange: Exchange): Promise<object> {
  const { context, request } = exchange
  const fields = await readFields(exchange)
  const email = fields.required('email').trim()
  const password = fields.required('password')
  if (password.length > LONGEST_PASSWORD) {
    throw new PlatformError(400, `A password has at most ${LONGEST_PASSWORD} characters.`)
  }
  const user = await context.attempts.attempt(clientOf(request), email, async () => {
    const known = context.users.find(email)
    const right = await isPassword(known?.password ?? NO_HASH, password)
    return right ? known : undefined
  })
  if (user === undefined) throw new PlatformError(401, 'The e-mail address or the password is wrong.')
  return { auth_token: await context.tokens.ofSignIn(user), message: 'Signed in.' }
}
