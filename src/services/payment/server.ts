import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import { parseTarget } from '../http/find-route.js'
import type { BodyGate } from '../http/receive.js'
import { createHttpServer, UNKNOWN_CODING } from '../http/server.js'
import type { PaymentContext, Variant } from './context.js'
import { serveCar } from './dealing/car-folder.js'
import { PaymentError, withRoutesInWords } from './errors.js'
import { failureText, findRoute, type Route, replyFailure, replySuccess } from './http.js'
import { serveIpfs } from './ipfs/serve.js'
import { routes } from './routes.js'
import { callerOf } from './sign-in.js'

/** Path of the CAR of a task, named by its UUID. */
const CAR = /^\/cars\/([0-9a-f-]{36})\.car$/

/** Room for a JWT besides the other headers. Bytes. */
const MAX_HEADER_BYTES = 16 * 1024

/** Creates the HTTP server of the storage payment API; it does not listen yet. */
export function createPaymentServer(context: PaymentContext): Server {
  const table = withRoutesInWords(routes, context.words)
  return createHttpServer({
    maxHeaderBytes: MAX_HEADER_BYTES,
    maxConnections: context.limits.maxConnections,
    log: context.log,
    handle: (request, response, body) => handle(context, table, request, response, body),
    broken: (code) => {
      const { status, error } = brokenRequest(code)
      return { status, type: 'application/json; charset=utf-8', text: failureText(error) }
    },
  })
}

function brokenRequest(code: string | undefined): { status: string; error: PaymentError } {
  if (code === UNKNOWN_CODING) {
    const error = new PaymentError('coding', 'the only transfer coding that is implemented is chunked')
    return { status: '501 Not Implemented', error }
  }
  const error = new PaymentError('structure', 'the request is not HTTP/1.1, or its headers are too large')
  const isLarge = code === 'HPE_HEADER_OVERFLOW'
  return { status: isLarge ? '431 Request Header Fields Too Large' : '400 Bad Request', error }
}

function codeOf({ codeless, codeAsText }: Route, variant: Variant): 200 | '200' | undefined {
  if (codeless === variant) return undefined
  return codeAsText ? '200' : 200
}

async function handle(
  context: PaymentContext,
  table: readonly Route[],
  request: IncomingMessage,
  response: ServerResponse,
  body: BodyGate,
): Promise<void> {
  const answerable = { request, response, body }
  try {
    const target = parseTarget(request.url ?? '/')
    if (target.path.startsWith('/ipfs/')) {
      await serveIpfs({ ...answerable, context, query: target.parameters }, target.path)
      return
    }
    const [, task] = CAR.exec(target.path) ?? []
    if (task !== undefined) {
      await serveCar({ ...answerable, context }, task)
      return
    }
    const { route, path } = findRoute(table, context.variant, request.method ?? '', target.path)
    const caller = await callerOf({ context, request }, route)
    const data = await route.answer({ ...answerable, context, query: target.parameters, path, caller })
    replySuccess(answerable, data, codeOf(route, context.variant))
  } catch (error) {
    replyFailure(answerable, error, context.log)
  }
}
