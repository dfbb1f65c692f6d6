import type { IncomingMessage } from 'node:http'
import { HttpError } from './errors.js'

/** What a table of routes needs of each. */
interface Pattern {
  readonly method: string
  /**
   * Begins with a slash; a segment `:name` matches any text, and `*` at the end the rest of the path, which stays
   * percent-encoded.
   */
  readonly path: string
}

/** A route, and the values of its path. */
interface Match<R> {
  readonly route: R
  readonly path: Readonly<Record<string, string>>
}

/** The endpoints of a service. */
export class RouteTable<R extends Pattern> {
  readonly #routes: readonly { readonly route: R; readonly pattern: readonly string[] }[]

  constructor(routes: readonly R[]) {
    this.#routes = routes.map((route) => ({ route, pattern: route.path.split('/') }))
  }

  /**
   * The route of a request; or the methods that an existing path takes, none for an unknown path. Throws HttpError 400
   * when a value in the path is not percent-encoded UTF-8.
   */
  find(method: string, path: string): Match<R> | { readonly allowed: readonly string[] } {
    const segments = path.split('/')
    const allowed = new Set<string>()
    for (const { route, pattern } of this.#routes) {
      const values = match(pattern, segments)
      if (values === undefined) continue
      if (route.method === method) return { route, path: values }
      allowed.add(route.method)
    }
    return { allowed: [...allowed] }
  }

  /** As `find`, with HEAD for GET. Throws HttpError: 404 for an unknown path, 405 for another method. */
  require(method: string | undefined, path: string): Match<R> {
    const found = this.find(method === 'HEAD' ? 'GET' : (method ?? ''), path)
    if ('route' in found) return found
    if (found.allowed.length === 0) throw new HttpError(404, 'There is no such path.')
    throw notAllowed(found.allowed)
  }
}

/** A refusal of the method of a request. */
function notAllowed(allowed: readonly string[]): HttpError {
  const list = allowed.join(', ')
  return new HttpError(405, `This path takes ${list}.`, ['Allow', list])
}

function match(pattern: readonly string[], segments: readonly string[]): Record<string, string> | undefined {
  const open = pattern.at(-1) === '*'
  if (open ? segments.length < pattern.length - 1 : segments.length !== pattern.length) return undefined
  const values: Record<string, string> = {}
  for (const [n, part] of pattern.entries()) {
    if (part === '*') {
      values[part] = segments.slice(n).join('/')
      return values
    }
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
    throw new HttpError(400, 'The path is not percent-encoded UTF-8.')
  }
}

/** A request target, split but not decoded: one character per byte received. */
export interface Target {
  /** Percent-encoded, starts with `/`. */
  readonly path: string
  /** Percent-encoded, without `?`. */
  readonly query: string
  readonly parameters: URLSearchParams
}

const ABSOLUTE = /^https?:\/\/[^/?]*/i

export function parseTarget(url: string): Target {
  const local = url.startsWith('/') ? url : url.replace(ABSOLUTE, '')
  const at = local.indexOf('?')
  const query = at < 0 ? '' : local.slice(at + 1)
  const path = at < 0 ? local : local.slice(0, at)
  return { path: path === '' ? '/' : path, query, parameters: new URLSearchParams(query) }
}

/** The token of `Authorization: Bearer`; undefined without one. */
export function bearerOf({ headers }: Pick<IncomingMessage, 'headers'>): string | undefined {
  return /^Bearer +(\S+) *$/i.exec(headers.authorization ?? '')?.[1]
}
