import { isDiskFull } from '../../../common/disk-reserve.js'
import { type Found, findRoute as findPattern } from '../../http/find-route.js'
import { ReceiveError } from '../../http/receive.js'
import { type Answerable, reply } from '../../http/reply.js'
import type { ServicesLog } from '../../log.js'
import type { PlatformContext } from '../context.js'
import { PlatformError } from '../errors.js'
import type { Caller } from '../sign-in.js'

/**
 * Who may call: `public` ignores the Authorization header; `optional` answers anonymous callers, too, but refuses an
 * invalid token; `user` needs the JWT of a sign-in or of an API key; `signed-in` needs the JWT of a sign-in.
 */
export type Access = 'public' | 'optional' | 'user' | 'signed-in'

/** One endpoint. */
export interface Route {
  readonly method: 'GET' | 'POST' | 'PUT'
  /** Begins with a slash; a segment `:name` matches any text. */
  readonly path: string
  readonly access: Access
  /** Returns the members of the answer beside `status`, which is `success` by default. Throws PlatformError. */
  answer(exchange: Exchange): Promise<object> | object
}

/** A route, and the values of its path. */
interface Match {
  readonly route: Route
  readonly path: Readonly<Record<string, string>>
}

/** Finds the route of a request. Throws PlatformError: 404 for an unknown path, 405 for another method. */
export function findRoute(routes: readonly Route[], method: string, path: string): Match {
  const found = find(routes, method, path)
  if ('route' in found) return found
  if (found.allowed.length === 0) throw new PlatformError(404, 'There is no such path.')
  const allowed = found.allowed.join(', ')
  throw new PlatformError(405, `This path takes ${allowed}.`, ['Allow', allowed])
}

function find(routes: readonly Route[], method: string, path: string): Found<Route> {
  try {
    return findPattern(routes, method, path)
  } catch (error) {
    if (error instanceof URIError) throw new PlatformError(400, 'The path is not percent-encoded UTF-8.')
    throw error
  }
}

/** One request and its response. */
export interface Exchange extends Answerable {
  readonly context: PlatformContext
  /** Parameters of the query. */
  readonly query: URLSearchParams
  /** Values of the `:name` segments in the path of the route, percent-decoded. */
  readonly path: Readonly<Record<string, string>>
  /** Undefined for an anonymous caller, and on routes with the access `public`. */
  readonly caller: Caller | undefined
}

const JSON_TYPE = 'application/json; charset=utf-8'

/** Answers 200: clients take any other status for a failure. */
export function replySuccess(exchange: Answerable, members: object): void {
  const body = Buffer.from(JSON.stringify({ status: 'success', ...members }))
  reply(exchange, 200, ['Content-Type', JSON_TYPE, 'Cache-Control', 'no-store'], body)
}

/** Answers with `{status: "fail", message}`. Unexpected errors are logged and become 500. */
export function replyFailure(exchange: Answerable, error: unknown, log: ServicesLog): void {
  const { status, message, headers } = asPlatformError(error, log)
  reply(exchange, status, ['Content-Type', JSON_TYPE, ...headers], Buffer.from(failureText(message)))
}

export function failureText(message: string): string {
  return JSON.stringify({ status: 'fail', message })
}

function asPlatformError(error: unknown, log: ServicesLog): PlatformError {
  if (error instanceof PlatformError) return error
  if (error instanceof ReceiveError) return new PlatformError(error.kind === 'Stalled' ? 408 : 400, error.message)
  if (isDiskFull(error)) return new PlatformError(507, 'The disk of the platform is full.')
  log.error({ err: error }, 'A request to the task platform failed.')
  return new PlatformError(500, 'The platform could not answer because of an internal error.')
}
