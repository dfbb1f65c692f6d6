import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { Duplex } from 'node:stream'
import type { Identity } from './access/access.js'
import type { GatewayContext } from './context.js'
import { errorTable } from './error-table.js'
import { GatewayError } from './errors.js'
import { BodyGate, type Exchange } from './http/exchange.js'
import { isOwnPath } from './http/own-path.js'
import { reply } from './http/reply.js'
import { replyRestError, replyXmlError } from './http/reply-error.js'
import { route } from './http/route.js'
import { hasBadComponents, parseTarget } from './http/target.js'

/** Room for 8 KiB of metadata and a key of 1024 bytes, percent-encoded, beside everything else. Bytes. */
const MAX_HEADER_BYTES = 64 * 1024

/** The gateway's HTTP side, not listening yet. */
export function createGatewayServer(context: GatewayContext): Server {
  const server = createServer({
    maxHeaderSize: MAX_HEADER_BYTES,
    headersTimeout: 60_000,
    // Bodies may take hours; one on which nothing arrives is given up by its reader.
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
  // A client that goes away is no reason to stop.
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

/** Who the Authorization header says is calling; undefined when it has been refused, which comes before everything else. */
async function identify(exchange: Exchange): Promise<Identity | undefined> {
  const { context, request, target } = exchange
  const header = request.headers.authorization
  if (header === undefined) return 'anonymous'
  const token = BEARER.exec(header)?.[1]
  if (token === undefined) {
    replyXmlError(exchange, new GatewayError('UnsupportedAuthorization'))
    return undefined
  }
  if (await context.tokens.isValid(token)) return 'owner'
  if (context.quirks.has('expired-401')) reply(exchange, 401, [])
  else if (isOwnPath(context, target.path)) replyRestError(exchange, new GatewayError('InvalidToken'))
  else replyXmlError(exchange, new GatewayError('InvalidToken'))
  return undefined
}

/**
 * What is not HTTP, or ends before its Content-Length.
 * @param latest the last answer on this connection: while that is on its way, no other may be
 */
function answerBrokenRequest(error: NodeJS.ErrnoException, socket: Duplex, latest: ServerResponse | undefined): void {
  const answering = latest?.headersSent === true && !latest.writableFinished
  if (error.code === 'ECONNRESET' || !socket.writable || answering) {
    socket.destroy()
    return
  }
  const { status, text } = brokenRequest(error.code)
  socket.end(
    `HTTP/1.1 ${status}\r\nConnection: close\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: ${text.length}\r\n\r\n${text}`,
  )
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
