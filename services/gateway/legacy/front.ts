import { reply } from '../../http/reply.js'
import { GatewayError } from '../errors.js'
import { type GatewayExchange, replyXmlError } from '../exchange.js'
import { plainFront } from '../front.js'
import type { Endpoint, Front } from '../handler.js'
import { webrpc } from '../rpc/webrpc.js'
import { downloading, sending, uploading } from './bodies.js'
import { replyConsolePage } from './console-page.js'
import { retrievingDealtBucket, retrievingObject, uncheckedDealOfBucket, uncheckedDealOfObject } from './deals.js'
import { LegacyError } from './errors.js'
import { FolderKeys, hasBadComponents } from './folder-keys.js'
import { callReaderOf, methodsOf } from './methods.js'
import type { QuirkName } from './quirks.js'

type Quirks = ReadonlySet<QuirkName>
type Handle = Endpoint['handle']

/** What answers requests of a gateway with these quirks. */
export function frontOf(quirks: Quirks): Front {
  if (quirks.size === 0) return plainFront
  const rpc = webrpc(methodsOf(quirks, new FolderKeys(quirks)), callReaderOf(quirks))
  const handleOf = ({ method, path, handle }: Endpoint): Handle => {
    if (path === '/webrpc/*') return rpc
    if (path === '/upload/*') return uploading(quirks, handle)
    if (path === '/download/*') {
      return method === 'HEAD' && quirks.has('no-head') ? replyConsolePage : downloading(quirks, handle)
    }
    if (path === '/deal/*' && quirks.has('unchecked-deals')) return uncheckedDealOfObject
    if (path === '/deals/*' && quirks.has('unchecked-deals')) return uncheckedDealOfBucket
    if (path === '/retrieve/*') return retrievingObject(quirks)
    if (path === '/bucket/*' && quirks.has('retrieve-500')) return retrievingDealtBucket
    return handle
  }
  const ofMozilla = <A extends readonly unknown[]>(handle: (exchange: GatewayExchange, ...rest: A) => void) =>
    quirks.has('require-mozilla') ? requiringMozilla(handle) : handle
  return {
    endpoints: plainFront.endpoints
      .filter(({ method, path }) => method !== 'HEAD' || path === '/download/*' || !quirks.has('no-head'))
      .map((endpoint) => ({ ...endpoint, handle: ofMozilla(handleOf(endpoint)) })),
    admit(exchange) {
      if (!quirks.has('strict-keys') || !hasBadComponents(exchange.target.path)) return false
      replyXmlError(exchange, new LegacyError('BadComponents'))
      return true
    },
    refuseToken: quirks.has('expired-401') ? (exchange) => reply(exchange, 401, []) : plainFront.refuseToken,
    shared: (exchange) => sending(quirks, exchange, exchange.target.path.slice(1), () => plainFront.shared(exchange)),
    unrouted: ofMozilla(quirks.has('html-without-token') ? replyConsolePage : plainFront.unrouted),
  }
}

/** Without Mozilla in User-Agent, POST falls through to the S3 interface of public gateways, all else is refused. */
function requiringMozilla<A extends readonly unknown[], R>(
  handle: (exchange: GatewayExchange, ...rest: A) => R,
): (exchange: GatewayExchange, ...rest: A) => R | undefined {
  return (exchange, ...rest) => {
    const { request } = exchange
    if (request.headers['user-agent']?.includes('Mozilla')) return handle(exchange, ...rest)
    replyXmlError(
      exchange,
      request.method === 'POST' ? new GatewayError('AccessDenied') : new LegacyError('AllAccessDisabled'),
    )
    return undefined
  }
}
