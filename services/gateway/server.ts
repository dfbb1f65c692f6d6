import type { Server } from 'node:http'
import { ReceiveError } from '../http/errors.js'
import { PortClients } from '../http/port.js'
import { reply } from '../http/reply.js'
import { bearerOf, RouteTable } from '../http/routes.js'
import { createHttpServer, type HandlerOptions, type HttpServerOptions, serving } from '../http/server.js'
import type { Identity } from './access.js'
import type { GatewayContext } from './context.js'
import { errorTable, GatewayError } from './errors.js'
import {
  type GatewayExchange,
  hasBadComponents,
  isOwnPath,
  replyConsolePage,
  replyRestError,
  replyXmlError,
} from './exchange.js'
import type { Feature } from './quirks.js'
import { networkControl } from './rest/deal-envelope.js'
import {
  dealList,
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
import { makeTask, showTask } from './rest/offline-deals.js'
import { retrieveBucket, retrieveObject, sendCar } from './rest/retrieve.js'
import { upload } from './rest/upload.js'
import { webrpc } from './rpc/webrpc.js'

/** Room for 8 KiB of metadata and a percent-encoded key of 1024 bytes besides the other headers. Bytes. */
const MAX_HEADER_BYTES = 64 * 1024

/** What answers clients over HTTP, and those in this process. */
interface GatewayServer {
  readonly http: Server
  readonly ports: PortClients
}

export function createGatewayServer(context: GatewayContext): GatewayServer {
  const table = new RouteTable(endpointsOf(context))
  const options: HttpServerOptions & HandlerOptions = {
    maxHeaderBytes: MAX_HEADER_BYTES,
    maxConnections: context.limits.maxConnections,
    log: context.log,
    async handle({ request, response, target, body }) {
      // Member by member, since this runs for each request: members behind a spread make a slow object.
      const anonymous: GatewayExchange = { request, response, target, body, context, identity: 'anonymous' }
      if (context.quirks.has('strict-keys') && hasBadComponents(target.path)) {
        return replyXmlError(anonymous, new GatewayError('BadComponents'))
      }
      const identity = isKeyPairPath(anonymous) ? 'anonymous' : await identify(anonymous)
      if (identity !== undefined) await route(table, { request, response, target, body, context, identity })
    },
    fail: (exchange, error) => replyRestError({ ...exchange, context, identity: 'anonymous' }, error),
    ready: () => context.db.read.accounts.first(),
    describe: (error) => ({
      type: 'text/plain; charset=utf-8',
      text: error instanceof ReceiveError ? errorTable[error.kind].rpc({}) : error.message,
    }),
  }
  const serve = serving(options)
  return {
    http: createHttpServer(options, serve),
    ports: new PortClients(MAX_HEADER_BYTES, (request, response) => void serve(request, response, false)),
  }
}

/**
 * Returns the caller by the Authorization header. Returns undefined when the request has been refused, which precedes
 * all other checks.
 */
async function identify(exchange: GatewayExchange): Promise<Identity | undefined> {
  const { context, request, target } = exchange
  if (request.headers.authorization === undefined) return 'anonymous'
  const token = bearerOf(request)
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

interface Endpoint {
  readonly feature?: Feature
  readonly method: 'GET' | 'HEAD' | 'POST' | 'PUT'
  /** Behind the path of the gateway. */
  readonly path: string
  /** @param rest the path behind the name of the endpoint, percent-encoded */
  readonly handle: (exchange: GatewayExchange, rest: string) => Promise<void> | void
}

const endpoints: readonly Endpoint[] = [
  { method: 'GET', path: '/', handle: keyPair },
  { method: 'POST', path: '/webrpc/*', handle: webrpc },
  { method: 'PUT', path: '/upload/*', handle: upload },
  { method: 'GET', path: '/download/*', handle: download },
  { method: 'HEAD', path: '/download/*', handle: download },
  { method: 'POST', path: '/deal/*', handle: dealOfObject },
  { method: 'POST', path: '/deals/*', handle: dealOfBucket },
  { method: 'POST', path: '/offlinedeals/*', handle: makeTask },
  { method: 'GET', path: '/offlinedeals/*', handle: showTask, feature: 'offline-deals' },
  { method: 'GET', path: '/car/*', handle: sendCar, feature: 'offline-deals' },
  { method: 'HEAD', path: '/car/*', handle: sendCar, feature: 'offline-deals' },
  { method: 'GET', path: '/retrieve/*', handle: retrieveObject },
  { method: 'GET', path: '/bucket/*', handle: retrieveBucket },
  { method: 'GET', path: '/dealprogress/*', handle: dealProgress, feature: 'deal-tokens' },
  { method: 'GET', path: '/dealstatus/*', handle: dealStatus, feature: 'deal-status' },
  { method: 'GET', path: '/deallist/*', handle: dealList, feature: 'deal-list' },
  { method: 'GET', path: '/providers/*', handle: listProviders, feature: 'deal-providers' },
  { method: 'POST', path: '/evict/*', handle: evictObject, feature: 'deal-eviction' },
  { method: 'POST', path: '/verify/*', handle: verifyObject, feature: 'deal-verification' },
  { method: 'POST', path: '/network/*', handle: networkControl, feature: 'network-control' },
]

function endpointsOf({ features, quirks }: GatewayContext): Endpoint[] {
  return endpoints
    .filter(({ feature }) => feature === undefined || features.has(feature))
    .filter(({ method }) => method !== 'HEAD' || !quirks.has('no-head'))
}

async function route(table: RouteTable<Endpoint>, exchange: GatewayExchange): Promise<void> {
  const { context, request, target } = exchange
  const { quirks } = context
  if (!isOwnPath(context, target.path)) return sharedObject(exchange)
  if (quirks.has('require-mozilla') && !request.headers['user-agent']?.includes('Mozilla')) {
    const kind = request.method === 'POST' ? 'AccessDenied' : 'AllAccessDisabled'
    return replyXmlError(exchange, new GatewayError(kind))
  }
  const path = target.path.slice(context.names.path.length + 1) || '/'
  const found = table.find(request.method ?? '', path)
  if ('route' in found) {
    try {
      await found.route.handle(exchange, found.path['*'] ?? '')
    } catch (error) {
      // Public gateways check the size of metadata first, and answer as S3 does (MinIO cmd/generic-handlers.go).
      const early = error instanceof GatewayError && error.kind === 'MetadataTooLarge' && quirks.has('small-metadata')
      if (early) replyXmlError(exchange, error)
      else replyRestError(exchange, error)
    }
  } else if (quirks.has('html-without-token') || (request.method === 'HEAD' && path.split('/')[1] === 'download')) {
    replyConsolePage(exchange)
  } else if (found.allowed.length > 0) {
    replyRestError(exchange, new GatewayError('MethodNotAllowed'), ['Allow', found.allowed.join(', ')])
  } else {
    replyRestError(exchange, new GatewayError('NotFound'))
  }
}
