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
  const segments = path.split('/')
  const matches = routes.flatMap((route) => {
    const values = match(route.path.split('/'), segments)
    return values === undefined ? [] : [{ route, path: values }]
  })
  if (matches.length === 0) throw new PlatformError(404, 'There is no such path.')
  const asked = method === 'HEAD' ? 'GET' : method
  const found = matches.find(({ route }) => route.method === asked)
  if (found !== undefined) return found
  const allowed = [...new Set(matches.map(({ route }) => route.method))].join(', ')
  throw new PlatformError(405, `This path takes ${allowed}.`, ['Allow', allowed])
}

function match(pattern: readonly string[], segments: readonly string[]): Record<string, string> | undefined {
  if (pattern.length !== segments.length) return undefined
  const values: Record<string, string> = {}
  for (const [n, part] of pattern.entries()) {
    const segment = segments[n] as string
    if (!part.startsWith(':')) {
      if (part !== segment) return undefined
    } else if (segment === '') return undefined
    else values[part.slice(1)] = decoded(segment)
  }
  return values
}

function decoded(segment: string): string {
  try {
    return decodeURIComponent(segment)
  } catch {
    throw new PlatformError(400, 'The path is not percent-encoded UTF-8.')
  }
}
