import { bodyRefusalOf, type Identity, isAllowed } from '../access/access.js'
import { mustFindBucket } from '../bucket-name.js'
import { GatewayError } from '../errors.js'
import type { Exchange } from '../http/exchange.js'
import { replyConsolePage } from '../http/reply.js'
import { parsePlace } from './place.js'
import { sendObject } from './send-object.js'

/** GET|HEAD download/<bucket>/<object>?token=: the body of the object. */
export async function download(exchange: Exchange, path: string): Promise<void> {
  const { context, target } = exchange
  const token = target.parameters.get('token')
  if (token === null && context.quirks.has('html-without-token')) return replyConsolePage(exchange)

  const identity = await identify(exchange, token)
  const place = parsePlace(context, path)
  const found = context.buckets.find(place.bucket)
  if (!isAllowed(context.policies, identity, 'get', found, place.key.toString())) {
    throw bodyRefusalOf(context, identity)
  }
  await sendObject(exchange, mustFindBucket(context, place.bucket), place.key)
}

/** Uses the token, or the Authorization header when there is none. */
async function identify({ context, identity }: Exchange, token: string | null): Promise<Identity> {
  if (token === null || token === '') return identity
  const account = await context.tokens.accountOf(token)
  if (account === undefined) throw new GatewayError('Authentication')
  return account
}
