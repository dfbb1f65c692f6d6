import { ReceiveError } from '../http/errors.js'
import { bearerOf, RouteTable } from '../http/routes.js'
import type { HandlerOptions } from '../http/server.js'
import type { Identity } from './access.js'
import type { GatewayContext, ReadContext } from './context.js'
import { errorTable, GatewayError } from './errors.js'
import { type ExchangeIn, isOwnPath, type ReadExchange, replyRestError, replyXmlError } from './exchange.js'
import type { Feature } from './features.js'

/** Room for 8 KiB of metadata and a percent-encoded key of 1024 bytes besides the other headers. Bytes. */
export const MAX_HEADER_BYTES = 64 * 1024

export interface Endpoint<C extends ReadContext = GatewayContext> {
  readonly feature?: Feature
  readonly method: 'GET' | 'HEAD' | 'POST' | 'PUT'
  /** Behind the path of the gateway. */
  readonly path: string
  /**
   * Throws what `replyRestError` answers.
   * @param rest the path behind the name of the endpoint, percent-encoded
   */
  readonly handle: (exchange: ExchangeIn<C>, rest: string) => Promise<void> | void
}

/** What answers requests, once the table of routes has their endpoint. */
export interface Front<C extends ReadContext = GatewayContext> {
  readonly endpoints: readonly Endpoint<C>[]
  /** Comes before all else, the check of the token included. True when it has answered. */
  admit(exchange: ExchangeIn<C>): boolean
  /** Answers a request with a bearer token that is none. */
  refuseToken(exchange: ExchangeIn<C>): void
  /** Answers a request for a path outside of the gateway's own: an object on its S3 side. */
  shared(exchange: ExchangeIn<C>): Promise<void>
  /**
   * Answers a request that no endpoint takes.
   * @param allowed the methods that its path takes; none for an unknown path
   */
  unrouted(exchange: ExchangeIn<C>, allowed: readonly string[]): void
}

/** What answers where no endpoint does, unless a layer in front of the gateway does it in another way. */
export const plainAnswers: Pick<Front<ReadContext>, 'admit' | 'refuseToken' | 'unrouted'> = {
  admit: () => false,
  refuseToken(exchange) {
    const error = new GatewayError('InvalidToken')
    if (isOwnPath(exchange.context, exchange.target.path)) replyRestError(exchange, error)
    else replyXmlError(exchange, error)
  },
  unrouted(exchange, allowed) {
    if (allowed.length === 0) replyRestError(exchange, new GatewayError('NotFound'))
    else replyRestError(exchange, new GatewayError('MethodNotAllowed'), ['Allow', allowed.join(', ')])
  },
}

/** Answers the requests for the endpoints of a front. */
export function handlerOf<C extends ReadContext>(context: C, front: Front<C>): HandlerOptions {
  const served = ({ feature }: Endpoint<C>) => feature === undefined || context.features.has(feature)
  const table = new RouteTable(front.endpoints.filter(served))
  return {
    log: context.log,
    handle({ request, response, target, body }) {
      // Member by member, since this runs for each request: members behind a spread make a slow object.
      const anonymous: ExchangeIn<C> = { request, response, target, body, context, identity: 'anonymous' }
      if (front.admit(anonymous)) return
      const isSigned = request.headers.authorization !== undefined && !isKeyPairPath(anonymous)
      return isSigned ? routeIdentified(table, front, anonymous) : route(table, front, anonymous)
    },
    fail: (exchange, error) => replyRestError({ ...exchange, context, identity: 'anonymous' }, error),
    ready: () => context.db.read.accounts.first(),
    describe: (error) => ({
      type: 'text/plain; charset=utf-8',
      text: error instanceof ReceiveError ? errorTable[error.kind].rpc({}) : error.message,
    }),
  }
}

/** True for the path of `keyPair`, whose token is none of the gateway's. */
function isKeyPairPath({ context, target }: ReadExchange): boolean {
  return target.path === `/${context.names.path}` || target.path === `/${context.names.path}/`
}

/**
 * Returns the caller by the Authorization header. Returns undefined when the request has been refused, which precedes
 * all other checks.
 */
async function identify<C extends ReadContext>(
  exchange: ExchangeIn<C>,
  { refuseToken }: Front<C>,
): Promise<Identity | undefined> {
  const { context, request } = exchange
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

async function routeIdentified<C extends ReadContext>(
  table: RouteTable<Endpoint<C>>,
  front: Front<C>,
  anonymous: ExchangeIn<C>,
): Promise<void> {
  const identity = await identify(anonymous, front)
  if (identity !== undefined) await route(table, front, { ...anonymous, identity })
}

async function route<C extends ReadContext>(
  table: RouteTable<Endpoint<C>>,
  { shared, unrouted }: Front<C>,
  exchange: ExchangeIn<C>,
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
