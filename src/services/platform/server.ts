import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import { parseTarget } from '../http/find-route.js'
import type { BodyGate } from '../http/receive.js'
import { createHttpServer, UNKNOWN_CODING } from '../http/server.js'
import type { PlatformContext } from './context.js'
import { failureText, findRoute, replyFailure, replySuccess } from './http/route.js'
import { routes } from './routes.js'
import { callerOf } from './sign-in.js'

/** Room for a JWT besides the other headers. Bytes. */
const MAX_HEADER_BYTES = 16 * 1024

/** Creates the HTTP server of the platform; it does not listen yet. */
export function createPlatformServer(context: PlatformContext): Server {
  return createHttpServer({
    maxHeaderBytes: MAX_HEADER_BYTES,
    maxConnections: context.limits.maxConnections,
    log: context.log,
    handle: (request, response, body) => handle(context, request, response, body),
    broken: (code) => {
      const { status, message } = brokenRequest(code)
      return { status, type: 'application/json; charset=utf-8', text: failureText(message) }
    },
  })
}

async function handle(
  context: PlatformContext,
  request: IncomingMessage,
  response: ServerResponse,
  body: BodyGate,
): Promise<void> {
  const answerable = { request, response, body }
  try {
    const target = parseTarget(request.url ?? '/')
    const { route, path } = findRoute(routes, request.method ?? '', target.path)
    const caller = await callerOf({ context, request }, route.access)
    const answer = await route.answer({ ...answerable, context, query: target.parameters, path, caller })
    replySuccess(answerable, answer)
  } catch (error) {
    replyFailure(answerable, error, context.log)
  }
}

function brokenRequest(code: string | undefined): { status: string; message: string } {
  switch (code) {
    case 'HPE_HEADER_OVERFLOW':
      return { status: '431 Request Header Fields Too Large', message: 'The request headers are too large.' }
    case UNKNOWN_CODING:
      return { status: '501 Not Implemented', message: 'The only transfer coding that is implemented is chunked.' }
    case 'HPE_INVALID_EOF_STATE':
      return { status: '400 Bad Request', message: 'The body ended before its end.' }
    case 'ERR_HTTP_REQUEST_TIMEOUT':
      return { status: '408 Request Timeout', message: 'The request headers did not arrive in time.' }
    default:
      return { status: '400 Bad Request', message: 'The request is not HTTP/1.1.' }
  }
}
