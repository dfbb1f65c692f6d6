import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import { parseTarget } from '../http/find-route.js'
import type { BodyGate } from '../http/receive.js'
import { reply } from '../http/reply.js'
import { createHttpServer, UNKNOWN_CODING } from '../http/server.js'
import type { Identity } from './access.js'
import type { GatewayContext } from './context.js'
import { errorTable } from './error-table.js'
import { GatewayError } from './errors.js'
import {
  type Exchange,
  hasBadComponents,
  isOwnPath,
  replyConsolePage,
  replyRestError,
  replyXmlError,
  splitFirst,
} from './http.js'
import type { Feature } from './quirks.js'
import { networkControl } from './rest/deal-envelope.js'
import {
  dealOfBucket,
  dealOfObject,
  dealProgress,
  dealStatus,
  evictObject,
  listProviders,
  verifyObject,
} from './rest/deals.js'
import { download, sharedObject } from './rest/download.js'
import { isKeyPairPath, keyPair } from './rest/key-pair.js'
import { offlineDeals } from './rest/offline-deals.js'
import { retrieveBucket, retrieveObject, sendCar } from './rest/retrieve.js'
import { upload } from './rest/upload.js'
import { webrpc } from './rpc/webrpc.js'

/** Room for 8 KiB of metadata and a percent-encoded key of 1024 bytes besides the other headers. Bytes. */
const MAX_HEADER_BYTES = 64 * 1024

/** Creates the HTTP server of the gateway; it does not listen yet. */
export function createGatewayServer(context: GatewayContext): Server {
  return createHttpServer({
    maxHeaderBytes: MAX_HEADER_BYTES,
    maxConnections: context.limits.maxConnections,
    log: context.log,
    handle: (request, response, body) => handle(context, request, response, body),
    broken: (code) => ({ ...brokenRequest(code), type: 'text/plain; charset=utf-8' }),
  })
}

async function handle(
  context: GatewayContext,
  request: IncomingMessage,
  response: ServerResponse,
  body: BodyGate,
): Promise<void> {
  const exchange: Exchange = {
    context,
    request,
    response,
    target: parseTarget(request.url ?? '/'),
    identity: 'anonymous',
    body,
  }
  try {
    if (context.quirks.has('strict-keys') && hasBadComponents(exchange.target.path)) {
      return replyXmlError(exchange, new GatewayError('BadComponents'))
    }
    const identity = isKeyPairPath(exchange) ? 'anonymous' : await identify(exchange)
    if (identity !== undefined) await route({ ...exchange, identity })
  } catch (error) {
    replyRestError(exchange, error)
  }
}

const BEARER = /^Bearer +(\S+) *$/i

/**
 * Returns the caller by the Authorization header. Returns undefined when the request has been refused, which precedes
 * all other checks.
 */
async function identify(exchange: Exchange): Promise<Identity | undefined> {
  const { context, request, target } = exchange
  const header = request.headers.authorization
  if (header === undefined) return 'anonymous'
  const token = BEARER.exec(header)?.[1]
  if (token === undefined) {
    replyXmlError(exchange, new GatewayError('UnsupportedAuthorization'))
    return undefined
  }
  const account = await context.tokens.accountOf(token)
  if (account !== undefined) return account
  if (context.quirks.has('expired-401')) reply(exchange, 401, [])
  else if (isOwnPath(context, target.path)) replyRestError(exchange, new GatewayError('InvalidToken'))
  else replyXmlError(exchange, new GatewayError('InvalidToken'))
  return undefined
}

function brokenRequest(code: string | undefined): { status: string; text: string } {
  switch (code) {
    case 'HPE_HEADER_OVERFLOW':
      return { status: '431 Request Header Fields Too Large', text: 'The request headers are too large.' }
    case UNKNOWN_CODING:
      return { status: '501 Not Implemented', text: 'The only transfer coding that is implemented is chunked.' }
    case 'HPE_INVALID_EOF_STATE':
      return { status: '400 Bad Request', text: errorTable.IncompleteBody.rpc({}) }
    case 'ERR_HTTP_REQUEST_TIMEOUT':
      return { status: '408 Request Timeout', text: 'The request headers did not arrive in time.' }
    default:
      return { status: '400 Bad Request', text: 'The request is not HTTP/1.1.' }
  }
}

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
async function route(exchange: Exchange): Promise<void> {
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
