import { accountOfUser } from '../accounts/account-of-user.js'
import { GatewayError } from '../errors.js'
import type { Exchange } from '../http/exchange.js'
import { replyJson } from '../http/reply.js'
import { asGatewayError } from '../http/reply-error.js'
import { notYet } from './not-implemented.js'

const BEARER = /^Bearer +(\S+) *$/i

/**
 * GET on the gateway itself: the key pair of the account of a user of the task platform, whose JWT is the bearer token.
 */
export async function keyPair(exchange: Exchange): Promise<void> {
  const { context, request } = exchange
  if (context.platform === undefined) return notYet('Handing out the key pair')(exchange)
  try {
    const token = BEARER.exec(request.headers.authorization ?? '')?.[1]
    const user = token === undefined ? undefined : await context.platform.userOf(token)
    if (user === undefined) throw new GatewayError('InvalidToken')
    const { accessKey, secretKey } = await accountOfUser(context, user)
    const data = { access_key: accessKey, access_url: `http://${request.headers.host ?? ''}`, secret_key: secretKey }
    replyJson(exchange, 200, { data, status: 'success' })
  } catch (error) {
    const known = asGatewayError(error, exchange)
    replyJson(exchange, known.status, { data: null, status: 'fail', message: known.restText(exchange.context.quirks) })
  }
}

/** True for the path of `keyPair`, whose token is none of the gateway's. */
export function isKeyPairPath({ context, target }: Exchange): boolean {
  return target.path === `/${context.names.path}` || target.path === `/${context.names.path}/`
}
