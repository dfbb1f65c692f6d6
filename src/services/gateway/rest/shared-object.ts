import { isAllowed } from '../access/access.js'
import { isShareLink, verifyShareLink } from '../access/share-link.js'
import { mustFindBucket } from '../bucket-name.js'
import { GatewayError } from '../errors.js'
import type { Exchange } from '../http/exchange.js'
import { replyXmlError } from '../http/reply-error.js'
import { parsePlace } from './place.js'
import { sendObject } from './send-object.js'

/**
 * GET|HEAD /<bucket>/<object>: for clients with a share link, or with read access by policy. Errors are those of S3.
 */
export async function sharedObject(exchange: Exchange): Promise<void> {
  const { context, request, target, identity } = exchange
  try {
    if (request.method !== 'GET' && request.method !== 'HEAD') throw new GatewayError('AccessDenied')
    const caller = isShareLink(context, target) ? verifyShareLink(exchange) : identity
    const place = parsePlace(context, target.path.slice(1))
    const found = context.buckets.find(place.bucket)
    if (!isAllowed(context.policies, caller, 'get', found, place.key.toString())) {
      throw new GatewayError('AccessDenied')
    }
    await sendObject(exchange, mustFindBucket(context, place.bucket), place.key)
  } catch (error) {
    replyXmlError(exchange, error)
  }
}
