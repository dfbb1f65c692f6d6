import express, { type ErrorRequestHandler, type Express, type RequestHandler } from 'express'
import { hasUnknownCoding } from '../../common/broken-request.js'
import { awaitsContinue } from '../../common/expectation.js'
import { isForS3, misdirected } from '../../common/misdirected.js'
import { BodyGate, type HttpExchange } from '../http/body.js'
import { HttpError } from '../http/errors.js'
import { answerHealth, isHealthCall } from '../http/health.js'
import { reply } from '../http/reply.js'
import { parseTarget } from '../http/routes.js'
import { unknownCoding } from '../http/server.js'
import type { ServicesLog } from '../log.js'
import { asHttpError } from './errors.js'

/** An Express application that adds nothing of its own to an answer, and takes paths letter by letter. */
export function newApp(): Express {
  const app = express()
  app.disable('x-powered-by')
  app.disable('etag')
  app.enable('case sensitive routing')
  app.enable('strict routing')
  app.set('query parser', firstValues)
  return app
}

/** The parameters of a query by name, of which the first of each name counts. */
function firstValues(query: string | null): Record<string, string> {
  return Object.fromEntries([...new URLSearchParams(query ?? '')].reverse())
}

/** A request in Express, for what all services share. */
export function exchangeOf(
  request: Parameters<RequestHandler>[0],
  response: Parameters<RequestHandler>[1],
): HttpExchange {
  const target = parseTarget(request.url)
  return { request, response, target, body: new BodyGate(response, awaitsContinue(response)) }
}

/** Refuses a transfer coding that the parser accepts, and no service knows. */
export const refuseUnknownCoding: RequestHandler = ({ headers }, response, next) => {
  const refused = hasUnknownCoding(headers)
  // The body has arrived already where the application had to be loaded first. What comes after it is not believed.
  if (refused) response.shouldKeepAlive = false
  next(refused ? unknownCoding() : undefined)
}

/**
 * Answers `GET /-/live` and `GET /-/ready`.
 * @param ready reads something of the database; resolves once that succeeds
 */
export function healthCalls(ready: () => Promise<unknown>, log: ServicesLog): RequestHandler {
  return async (request, response, next) => {
    const exchange = exchangeOf(request, response)
    if (isHealthCall(exchange)) await answerHealth(exchange, ready, log)
    else next()
  }
}

/** Answers S3 clients in their terms. @param what they have found */
export function refuseS3(what: string): RequestHandler {
  return (request, response, next) => {
    if (!isForS3(request.headers, request.url)) return next()
    const { status, type, body } = misdirected(what)
    reply(exchangeOf(request, response), status, ['Content-Type', type], Buffer.from(body))
  }
}

/** Behind all routes. */
export const unknownPath: RequestHandler = (_, __, next) => next(new HttpError(404, 'There is no such path.'))

/**
 * The error handler of an application.
 * @param service for messages, such as `the task platform`
 * @param answer sends the refusal as the service writes it; does not throw
 */
export function answerErrors(
  service: string,
  log: ServicesLog,
  answer: (exchange: HttpExchange, refusal: HttpError) => void,
): ErrorRequestHandler {
  // Express takes a function of four parameters for an error handler.
  return (error: unknown, request, response, _next) => {
    answer(exchangeOf(request, response), asHttpError(fromRouter(error), service, log))
  }
}

/** The router refuses a path whose values it cannot decode by an error with a status. */
function fromRouter(error: unknown): unknown {
  const isOfRouter = error instanceof URIError && (error as { readonly status?: unknown }).status === 400
  return isOfRouter ? new HttpError(400, 'The path is not percent-encoded UTF-8.') : error
}
