import { decodePath } from '../../request/addressing/decode-path.js'
import type { Query } from '../../request/query.js'
import type { RequestHead } from '../../request/s3-request.js'
import type { AnyOperation } from '../forms/plugin.js'

/** The conditions for a request, with all members: routes as plugins write them lack some, and are slow to read. */
export type Route = Required<Pick<AnyOperation['on'], 'resource' | 'path' | 'query'>> & {
  readonly header: string | undefined
}

/** Parameters in the path. */
type Params = Readonly<Record<string, string>>

const NO_PARAMS: Params = Object.freeze({})

/** Returns the path parameters of a matching request; undefined if it does not match. */
export function fit(
  { path, query, header, resource }: Route,
  head: Pick<RequestHead, 'path' | 'query' | 'headers'>,
): Params | undefined {
  if (query.length > 0) {
    if (head.query.entries.length === 0) return undefined
    if (!query.every((wanted) => queryHas(head.query, wanted))) return undefined
  }
  if (header !== undefined && head.headers[header] === undefined) return undefined
  return resource === 'service' ? matchPath(path, head.path) : NO_PARAMS
}

function queryHas(query: Query, wanted: string): boolean {
  const at = wanted.indexOf('=')
  return at < 0 ? query.has(wanted) : query.get(wanted.slice(0, at)) === wanted.slice(at + 1)
}

/** Splits the path before decoding: an encoded slash, `%2F`, is part of a segment. */
export function matchPath(template: string, path: string): Params | undefined {
  if (!template.includes('{') && !path.includes('%')) return template === path ? {} : undefined
  const wanted = template.split('/')
  const given = path.split('/')
  if (wanted.length !== given.length) return undefined
  const params: Record<string, string> = {}
  for (const [i, segment] of wanted.entries()) {
    const name = /^\{(.+)\}$/.exec(segment)?.[1]
    const value = decodePath(given[i] ?? '')
    if (name !== undefined) params[name] = value
    else if (segment !== value) return undefined
  }
  return params
}
