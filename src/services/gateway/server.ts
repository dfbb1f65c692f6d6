import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { Duplex } from 'node:stream'
import { answerForm, type ParseError } from '../../common/broken-request.js'
import type { Identity } from './access/access.js'
import type { GatewayContext } from './context.js'
import { errorTable } from './error-table.js'
import { GatewayError } from './errors.js'
import { BodyGate, type Exchange } from './http/exchange.js'
import { isOwnPath } from './http/own-path.js'
import { reply } from './http/reply.js'
import { replyRestError, replyXmlError } from './http/reply-error.js'
import { hasBadComponents, parseTarget } from './http/target.js'
import { route } from './route.js'

/** Room for 8 KiB of metadata and a percent-encoded key of 1024 bytes besides the other headers. Bytes. */
const MAX_HEADER_BYTES = 64 * 1024

/** Creates the HTTP server of the gateway; it does not listen yet. */
export function createGatewayServer(context: GatewayContext): Server {
  const server = createServer({
    maxHeaderSize: MAX_HEADER_BYTES,
    headersTimeout: 60_000,
    // Bodies may take hours; the reader aborts one that stalls.
    requestTimeout: 0,
    keepAliveTimeout: 75_000,
  })
  const latest = new WeakMap<Duplex, ServerResponse>()
  const serve = (waiting: boolean) => (request: IncomingMessage, response: ServerResponse) => {
    latest.set(request.socket, response)
    return handle(context, request, response, waiting)
  }
  server.on('request', serve(false))
  server.on('checkContinue', serve(true))
  server.on('clientError', (error, socket) => answerBrokenRequest(error, socket, latest.get(socket)))
  return server
}

async function handle(
  context: GatewayContext,
  request: IncomingMessage,
  response: ServerResponse,
  waiting: boolean,
): Promise<void> {
  const exchange: Exchange = {
    context,
    request,
    response,
    target: parseTarget(request.url ?? '/'),
    identity: 'anonymous',
    body: new BodyGate(response, waiting),
  }
  // A client that disconnects must not stop the server.
  response.on('error', () => {})
  try {
    if (context.quirks.has('strict-keys') && hasBadComponents(exchange.target.path)) {
      return replyXmlError(exchange, new GatewayError('BadComponents'))
    }
    const identity = await identify(exchange)
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

/**
 * Answers a request that is not HTTP, or that ends before its Content-Length.
 * @param latest the last response on this connection: while it is being sent, no other may be sent
 */
function answerBrokenRequest(error: ParseError, socket: Duplex, latest: ServerResponse | undefined): void {
  const answering = latest?.headersSent === true && !latest.writableFinished
  if (error.code === 'ECONNRESET' || !socket.writable || answering) {
    socket.destroy()
    return
  }
  // The request itself is complete: its response is still sent, as the last one on this connection.
  if (latest?.req.complete && !latest.headersSent) {
    latest.shouldKeepAlive = false
    return
  }
  const { status, text } = brokenRequest(error.code)
  const current = latest && !latest.req.complete ? latest.req : undefined
  const form = answerForm(error, socket, current)
  const length = form === 'empty' ? 0 : text.length
  const head = `HTTP/1.1 ${status}\r\nConnection: close\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: ${length}\r\n\r\n`
  socket.end(form === 'document' ? head + text : head)
}

function brokenRequest(code: string | undefined): { status: string; text: string } {
  switch (code) {
    case 'HPE_HEADER_OVERFLOW':
      return { status: '431 Request Header Fields Too Large', text: 'The request headers are too large.' }
    case 'HPE_INVALID_EOF_STATE':
      return { status: '400 Bad Request', text: errorTable.IncompleteBody.rpc({}) }
    case 'ERR_HTTP_REQUEST_TIMEOUT':
      return { status: '408 Request Timeout', text: 'The request headers did not arrive in time.' }
    default:
      return { status: '400 Bad Request', text: 'The request is not HTTP/1.1.' }
  }
}
