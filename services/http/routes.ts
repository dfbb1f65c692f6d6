import type { IncomingMessage } from 'node:http'

/** What a table of routes needs of each. */
interface Pattern {
  readonly method: string
  /** `/`, or a name with all that is below it: `/download/*`. */
  readonly path: string
}

/** The endpoints of a service. */
export class RouteTable<R extends Pattern> {
  readonly #byName = new Map<string, R[]>()

  constructor(routes: readonly R[]) {
    for (const route of routes) {
      const [, name = ''] = route.path.split('/')
      this.#byName.set(name, [...(this.#byName.get(name) ?? []), route])
    }
  }

  /**
   * The route of a request, and the path behind its name, percent-encoded; or the methods that an existing path takes,
   * none for an unknown path.
   */
  find(method: string, path: string): { readonly route: R; readonly rest: string } | { readonly allowed: string[] } {
    const [, name = '', ...rest] = path.split('/')
    const isBelowRoot = name === '' && rest.length > 0
    const routes = isBelowRoot ? [] : (this.#byName.get(name) ?? [])
    const route = routes.find((one) => one.method === method)
    return route === undefined
      ? { allowed: [...new Set(routes.map((one) => one.method))] }
      : { route, rest: rest.join('/') }
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
