import type { Server } from 'node:http'
import { isForS3, misdirected } from '../../common/misdirected.js'
import type { HttpExchange } from '../http/body.js'
import { asHttpError, type HttpError } from '../http/errors.js'
import { JSON_TYPE, reply, replyJson } from '../http/reply.js'
import { RouteTable } from '../http/routes.js'
import { createHttpServer, type HandlerOptions, type HttpServerOptions, serving } from '../http/server.js'
import type { PaymentContext } from './context.js'
import { PaymentError } from './errors.js'
import { callerOf } from './exchange.js'
import { routes } from './routes.js'
import { withRoutesInWords } from './words.js'

/** Room for a JWT besides the other headers. Bytes. */
const MAX_HEADER_BYTES = 16 * 1024

const UNCACHED = ['Cache-Control', 'no-store']

export function createPaymentServer(context: PaymentContext): Server {
  const { mode, words, limits, log } = context
  const table = new RouteTable(withRoutesInWords(routes, words).filter(({ only = mode }) => only === mode))
  const options: HttpServerOptions & HandlerOptions = {
    maxHeaderBytes: MAX_HEADER_BYTES,
    maxConnections: limits.maxConnections,
    log,
    async handle(exchange) {
      const { request, target } = exchange
      if (isForS3(request.headers, request.url ?? '')) return answerS3(exchange)
      const { route, path } = table.require(request.method, target.path)
      const caller = await callerOf({ context, request }, route)
      const data = await route.answer({ ...exchange, context, query: target.parameters, path, caller })
      const code = route.codeless === mode ? undefined : route.codeAsText ? '200' : 200
      if (data !== undefined) replyJson(exchange, 200, { status: 'success', code, data }, UNCACHED)
    },
    fail(exchange, error) {
      const refusal = PaymentError.of(asHttpError(error, 'the storage payment service', log))
      replyJson(exchange, refusal.status, failureOf(refusal), [...UNCACHED, ...refusal.headers])
    },
    ready: () => context.db.read.settings.find('id'),
    describe: (error) => ({ type: String(JSON_TYPE[1]), text: JSON.stringify(failureOf(error)) }),
  }
  return createHttpServer(options, serving(options))
}

function answerS3(exchange: HttpExchange): void {
  const { status, type, body } = misdirected('the storage payment API of dealgate')
  reply(exchange, status, ['Content-Type', type], Buffer.from(body))
}

function failureOf(error: HttpError): object {
  const { code, message } = PaymentError.of(error)
  return { status: 'error', code, message }
}
