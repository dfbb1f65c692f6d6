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
