import { type Found, findRoute as findPattern } from '../../http/find-route.js'
import { PlatformError } from '../errors.js'
import type { Exchange } from './exchange.js'

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
export interface Match {
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
