import { replyJson } from '../../http/reply.js'
import { bearerOf } from '../../http/routes.js'
import { accountOfUser } from '../accounts/first-account.js'
import { GatewayError } from '../errors.js'
import { asGatewayError, type GatewayExchange, retryOf } from '../exchange.js'

/**
 * GET on the gateway itself: the key pair of the account of a user of the task platform, whose JWT is the bearer token.
 */
export async function keyPair(exchange: GatewayExchange): Promise<void> {
  const { context, request } = exchange
  if (context.platform === undefined) {
    const message = 'Handing out the key pair is not implemented by this gateway.'
    return replyJson(exchange, 501, { status: 'fail', message })
  }
  try {
    const token = bearerOf(request)
    const user = token === undefined ? undefined : await context.platform.userOf(token)
    if (user === undefined) throw new GatewayError('InvalidToken')
    const { accessKey, secretKey } = await accountOfUser(context, user)
    const data = { access_key: accessKey, access_url: `http://${request.headers.host ?? ''}`, secret_key: secretKey }
    replyJson(exchange, 200, { data, status: 'success' })
  } catch (error) {
    const known = asGatewayError(error, exchange)
    const message = context.errors.text(known)
    replyJson(exchange, known.status, { data: null, status: 'fail', message }, retryOf(known))
  }
}
