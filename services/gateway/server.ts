import type { Server } from 'node:http'
import { ReceiveError } from '../http/errors.js'
import { PortClients } from '../http/port.js'
import { bearerOf, RouteTable } from '../http/routes.js'
import { createHttpServer, type HandlerOptions, type HttpServerOptions, serving } from '../http/server.js'
import type { Identity } from './access.js'
import type { GatewayContext } from './context.js'
import { errorTable, GatewayError } from './errors.js'
import { type GatewayExchange, isOwnPath, replyRestError, replyXmlError } from './exchange.js'
import type { Endpoint, Front } from './front.js'
import { isKeyPairPath } from './rest/key-pair.js'

/** Room for 8 KiB of metadata and a percent-encoded key of 1024 bytes besides the other headers. Bytes. */
const MAX_HEADER_BYTES = 64 * 1024

/** What answers clients over HTTP, and those in this process. */
interface GatewayServer {
  readonly http: Server
  readonly ports: PortClients
}

export function createGatewayServer(context: GatewayContext, front: Front): GatewayServer {
  const served = ({ feature }: Endpoint) => feature === undefined || context.features.has(feature)
  const table = new RouteTable(front.endpoints.filter(served))
  const options: HttpServerOptions & HandlerOptions = {
    maxHeaderBytes: MAX_HEADER_BYTES,
    maxConnections: context.limits.maxConnections,
    log: context.log,
    async handle({ request, response, target, body }) {
      // Member by member, since this runs for each request: members behind a spread make a slow object.
      const anonymous: GatewayExchange = { request, response, target, body, context, identity: 'anonymous' }
      if (front.admit(anonymous)) return
      const identity = isKeyPairPath(anonymous) ? 'anonymous' : await identify(anonymous, front)
      if (identity !== undefined) await route(table, front, { request, response, target, body, context, identity })
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
async function identify(exchange: GatewayExchange, { refuseToken }: Front): Promise<Identity | undefined> {
  const { context, request } = exchange
  if (request.headers.authorization === undefined) return 'anonymous'
  const token = bearerOf(request)
  if (token === undefined) {
    replyXmlError(exchange, new GatewayError('UnsupportedAuthorization'))
    return undefined
  }
  const account = await context.tokens.accountOf(token)
  if (account !== undefined) return account
  refuseToken(exchange)
  return undefined
}

async function route(
  table: RouteTable<Endpoint>,
  { shared, unrouted }: Front,
  exchange: GatewayExchange,
): Promise<void> {
  const { context, request, target } = exchange
  if (!isOwnPath(context, target.path)) return shared(exchange)
  const found = table.find(request.method ?? '', target.path.slice(context.names.path.length + 1) || '/')
  if (!('route' in found)) return unrouted(exchange, found.allowed)
  try {
    await found.route.handle(exchange, found.rest)
  } catch (error) {
    replyRestError(exchange, error)
  }
}
