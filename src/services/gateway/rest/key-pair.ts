import { accountOfUser } from '../accounts/first-account.js'
import { GatewayError } from '../errors.js'
import { asGatewayError, type Exchange, replyJson } from '../http.js'

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

/** Answers for an endpoint of the interface that this gateway does not implement. The answer names the service. */
function notYet(what: string): (exchange: Exchange) => void {
  return (exchange) =>
    replyJson(exchange, 501, { status: 'fail', message: `${what} is not implemented by this gateway.` })
}
