import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import type { BodyGate } from '../http/body-gate.js'
import { reply } from '../http/reply.js'
import { createHttpServer, UNKNOWN_CODING } from '../http/server.js'
import { parseTarget } from '../http/target.js'
import type { Identity } from './access/access.js'
import type { GatewayContext } from './context.js'
import { errorTable } from './error-table.js'
import { GatewayError } from './errors.js'
import type { Exchange } from './http/exchange.js'
import { isOwnPath } from './http/own-path.js'
import { replyRestError, replyXmlError } from './http/reply-error.js'
import { hasBadComponents } from './http/target.js'
import { isKeyPairPath } from './rest/key-pair.js'
import { route } from './route.js'

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
