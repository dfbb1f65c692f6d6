import { type Identity, isAllowed } from '../access/access.js'
import { mustFindBucket } from '../bucket-name.js'
import { GatewayError } from '../errors.js'
import type { Exchange } from '../http/exchange.js'
import { replyConsolePage } from '../http/reply.js'
import { parsePlace } from './place.js'
import { sendObject } from './send-object.js'

/** GET|HEAD download/<bucket>/<object>?token=: the object's bytes. */
export async function download(exchange: Exchange, path: string): Promise<void> {
  const { context, target } = exchange
  const token = target.parameters.get('token')
  if (token === null && context.quirks.has('html-without-token')) return replyConsolePage(exchange)

  const identity = await identify(exchange, token)
  const place = parsePlace(context, path)
  const found = context.buckets.find(place.bucket)
  if (!isAllowed(context.policies, identity, 'get', found?.id, place.key.toString())) {
    throw new GatewayError('Authentication')
  }
  await sendObject(exchange, mustFindBucket(context, place.bucket), place.key)
}

/** The token decides; without one, the Authorization header. */
async function identify({ context, identity }: Exchange, token: string | null): Promise<Identity> {
  if (token === null || token === '') return identity
  if (!(await context.tokens.isValid(token))) throw new GatewayError('Authentication')
  return 'owner'
}
