import { isAllowed } from '../access/access.js'
import { isShareLink, verifyShareLink } from '../access/share-link.js'
import { mustFindBucket } from '../bucket-name.js'
import { GatewayError } from '../errors.js'
import type { Exchange } from '../http/exchange.js'
import { replyXmlError } from '../http/reply-error.js'
import { parsePlace } from './place.js'
import { sendObject } from './send-object.js'

/** GET|HEAD /<bucket>/<object>: for whoever has a share link, or may read it by policy. Errors are S3's. */
export async function sharedObject(exchange: Exchange): Promise<void> {
  const { context, request, target, identity } = exchange
  try {
    if (request.method !== 'GET' && request.method !== 'HEAD') throw new GatewayError('AccessDenied')
    const linked = isShareLink(context, target)
    if (linked) verifyShareLink(exchange)
    const place = parsePlace(context, target.path.slice(1))
    const found = context.buckets.find(place.bucket)
    const caller = linked ? 'owner' : identity
    if (!isAllowed(context.policies, caller, 'get', found?.id, place.key.toString())) {
      throw new GatewayError('AccessDenied')
    }
    await sendObject(exchange, mustFindBucket(context, place.bucket), place.key)
  } catch (error) {
    replyXmlError(exchange, error)
  }
}
