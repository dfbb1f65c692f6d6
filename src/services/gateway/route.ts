import type { GatewayContext } from './context.js'
import { GatewayError } from './errors.js'
import type { Exchange } from './http/exchange.js'
import { isOwnPath } from './http/own-path.js'
import { replyConsolePage } from './http/reply.js'
import { replyRestError, replyXmlError } from './http/reply-error.js'
import { splitFirst } from './http/target.js'
import type { Feature } from './quirks.js'
import { sendCar } from './rest/deals/car.js'
import { evictObject } from './rest/deals/evict.js'
import { dealOfBucket, dealOfObject } from './rest/deals/make.js'
import { networkControl } from './rest/deals/network-control.js'
import { offlineDeals } from './rest/deals/offline.js'
import { dealProgress } from './rest/deals/progress.js'
import { listProviders } from './rest/deals/providers.js'
import { retrieveBucket, retrieveObject } from './rest/deals/retrieve.js'
import { dealStatus } from './rest/deals/status.js'
import { verifyObject } from './rest/deals/verify.js'
import { download } from './rest/download.js'
import { keyPair } from './rest/key-pair.js'
import { sharedObject } from './rest/shared-object.js'
import { upload } from './rest/upload.js'
import { webrpc } from './rpc/webrpc.js'

interface Endpoint {
  /** The endpoint exists only with this feature. */
  readonly feature?: Feature
  readonly methods: readonly string[]
  /** Further methods, which exist only with this feature. */
  readonly also?: { readonly feature: Feature; readonly methods: readonly string[] }
  /** @param rest the path behind the name of the endpoint, percent-encoded */
  readonly handle: (exchange: Exchange, rest: string) => Promise<void> | void
}

const endpoints: Readonly<Record<string, Endpoint>> = {
  '': { methods: ['GET'], handle: keyPair },
  webrpc: { methods: ['POST'], handle: webrpc },
  upload: { methods: ['PUT'], handle: upload },
  download: { methods: ['GET', 'HEAD'], handle: download },
  deal: { methods: ['POST'], handle: dealOfObject },
  deals: { methods: ['POST'], handle: dealOfBucket },
  offlinedeals: { methods: ['POST'], also: { feature: 'offline-deals', methods: ['GET'] }, handle: offlineDeals },
  car: { feature: 'offline-deals', methods: ['GET', 'HEAD'], handle: sendCar },
  retrieve: { methods: ['GET'], handle: retrieveObject },
  bucket: { methods: ['GET'], handle: retrieveBucket },
  dealprogress: { feature: 'deal-tokens', methods: ['GET'], handle: dealProgress },
  dealstatus: { feature: 'deal-status', methods: ['GET'], handle: dealStatus },
  providers: { feature: 'deal-providers', methods: ['GET'], handle: listProviders },
  evict: { feature: 'deal-eviction', methods: ['POST'], handle: evictObject },
  verify: { feature: 'deal-verification', methods: ['POST'], handle: verifyObject },
  network: { feature: 'network-control', methods: ['POST'], handle: networkControl },
}

/** Dispatches the request to its endpoint. */
export async function route(exchange: Exchange): Promise<void> {
  const { context, request, target } = exchange
  if (!isOwnPath(context, target.path)) return sharedObject(exchange)
  if (context.quirks.has('require-mozilla') && !request.headers['user-agent']?.includes('Mozilla')) {
    const kind = request.method === 'POST' ? 'AccessDenied' : 'AllAccessDisabled'
    return replyXmlError(exchange, new GatewayError(kind))
  }
  const [name, rest] = splitFirst(target.path.slice(context.names.path.length + 2))
  const endpoint = endpointOf(name, context)
  const method = request.method ?? ''
  if (endpoint !== undefined && accepts(endpoint, method, context)) {
    try {
      await endpoint.handle(exchange, rest)
    } catch (error) {
      // Public gateways check the size of metadata first, and answer as S3 does (MinIO cmd/generic-handlers.go).
      const early =
        error instanceof GatewayError && error.kind === 'MetadataTooLarge' && context.quirks.has('small-metadata')
      if (early) replyXmlError(exchange, error)
      else replyRestError(exchange, error)
    }
  } else if (context.quirks.has('html-without-token') || (name === 'download' && method === 'HEAD')) {
    replyConsolePage(exchange)
  } else if (endpoint !== undefined) {
    replyRestError(exchange, new GatewayError('MethodNotAllowed'), ['Allow', methodsOf(endpoint, context).join(', ')])
  } else {
    replyRestError(exchange, new GatewayError('NotFound'))
  }
}

function endpointOf(name: string, { features }: GatewayContext): Endpoint | undefined {
  const endpoint = Object.hasOwn(endpoints, name) ? endpoints[name] : undefined
  return endpoint?.feature === undefined || features.has(endpoint.feature) ? endpoint : undefined
}

function accepts(endpoint: Endpoint, method: string, context: GatewayContext): boolean {
  return methodsOf(endpoint, context).includes(method) && !(method === 'HEAD' && context.quirks.has('no-head'))
}

function methodsOf({ methods, also }: Endpoint, { features }: GatewayContext): readonly string[] {
  return also !== undefined && features.has(also.feature) ? [...methods, ...also.methods] : methods
}
