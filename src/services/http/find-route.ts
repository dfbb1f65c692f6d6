/** What the finding of a route needs of it. */
interface Pattern {
  readonly method: string
  /** Begins with a slash; a segment `:name` matches any text. */
  readonly path: string
}

/** A route, and the values of its path; or the methods that an existing path takes, none for an unknown path. */
export type Found<R extends Pattern> =
  | { readonly route: R; readonly path: Readonly<Record<string, string>> }
  | { readonly allowed: readonly string[] }

/** Finds the route of a request. Throws URIError when a value in the path is not percent-encoded UTF-8. */
export function findRoute<R extends Pattern>(routes: readonly R[], method: string, path: string): Found<R> {
  const segments = path.split('/')
  const matches = routes.flatMap((route) => {
    const values = match(route.path.split('/'), segments)
    return values === undefined ? [] : [{ route, path: values }]
  })
  const asked = method === 'HEAD' ? 'GET' : method
  const found = matches.find(({ route }) => route.method === asked)
  return found ?? { allowed: [...new Set(matches.map(({ route }) => route.method))] }
}

function match(pattern: readonly string[], segments: readonly string[]): Record<string, string> | undefined {
  if (pattern.length !== segments.length) return undefined
  const values: Record<string, string> = {}
  for (const [n, part] of pattern.entries()) {
    const segment = segments[n] as string
    if (!part.startsWith(':')) {
      if (part !== segment) return undefined
    } else if (segment === '') return undefined
    else values[part.slice(1)] = decodeURIComponent(segment)
  }
  return values
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
