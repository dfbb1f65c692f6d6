import { S3Error } from '../errors/s3-error.js'
import { decodePath } from '../request/decode-path.js'
import type { Query } from '../request/query.js'
import type { Method, RequestHead, Resource } from '../request/s3-request.js'
import { refuseDemands } from './demands.js'
import type { AnyOperation, Plugin } from './plugin.js'
import { routeText } from './route-text.js'
import { isSubresource } from './subresources.js'

/** A row of the table: an operation and who owns it. */
export interface Row {
  readonly plugin: string
  readonly operation: AnyOperation
}

export interface Selected extends Row {
  readonly params: Readonly<Record<string, string>>
}

/** All operations of all plugins, by method and resource. */
export interface OperationTable {
  readonly rows: readonly Row[]
  /** The operation that answers this request. Throws S3Error MethodNotAllowed, NoSuchKey below `/-/`, NotImplemented, InvalidArgument. */
  select(head: Pick<RequestHead, 'method' | 'resource' | 'path' | 'query' | 'headers'>): Selected
}

/** Throws Error, naming both owners, when two declarations could answer the same request equally well. */
export function createTable(plugins: readonly Plugin[]): OperationTable {
  const rows = rowsOf(plugins)
  const doubled = collisions(rows)
  if (doubled.length > 0) throw new Error(doubled.join('; '))
  const slots = new Map<string, Candidate[]>()
  for (const row of rows) {
    for (const method of methodsOf(row.operation)) {
      const slot = slotName(method, row.operation.on.resource)
      slots.set(slot, [...(slots.get(slot) ?? []), candidate(row)])
    }
  }
  const extensions = extensionNames(rows)
  return {
    rows,
    select(head) {
      refuseSecond(head.query, extensions)
      const candidates = slots.get(slotName(head.method, head.resource)) ?? []
      const found = mostSpecific(candidates, head)
      refuseUnnamedKeys(found?.named, head, extensions)
      if (!found) throw unanswered(head, rows)
      refuseDemands(head.headers, found.operation.on.headers)
      return found
    },
  }
}

export function rowsOf(plugins: readonly Plugin[]): Row[] {
  return plugins.flatMap((plugin) => plugin.operations.map((operation) => ({ plugin: plugin.name, operation })))
}

function slotName(method: Method, resource: Resource): string {
  return `${method} ${resource}`
}

/** Routes that two operations declare, each in a sentence that names both owners. */
export function collisions(rows: readonly Row[]): string[] {
  const seen = new Map<string, Row>()
  const found = new Set<string>()
  for (const row of rows) {
    const { resource, path = '/', query = [], header = '' } = row.operation.on
    for (const method of methodsOf(row.operation)) {
      const route = `${method} ${resource} ${path.replace(/\{[^}]*\}/g, '{}')} ?${[...query].sort().join('&')} ${header}`
      const other = seen.get(route)
      if (other)
        found.add(
          `Plugins "${other.plugin}" (${other.operation.name}) and "${row.plugin}" (${row.operation.name}) both answer ${routeText(row.operation)}`,
        )
      seen.set(route, row)
    }
  }
  return [...found]
}

/** A row with what every selection needs of it. */
interface Candidate extends Row {
  /** Conditions on query and headers, then segments of the path that are no parameters: of all that fit, the one with the most is meant. */
  readonly weight: number
  /** Query keys that mean something to it. */
  readonly named: ReadonlySet<string>
}

/** More than any path has. */
const MAX_SEGMENTS = 1000

type Match = Candidate & Selected

function candidate(row: Row): Candidate {
  const { query = [], params = [], header, path = '/' } = row.operation.on
  const literal = path.split('/').filter((segment) => !segment.startsWith('{')).length
  return {
    ...row,
    weight: query.length + (header === undefined ? 0 : 1) + literal / MAX_SEGMENTS,
    named: new Set([...query, ...params].map((name) => name.split('=')[0] as string)),
  }
}

function mostSpecific(
  candidates: readonly Candidate[],
  head: Parameters<OperationTable['select']>[0],
): Match | undefined {
  let best: Candidate | undefined
  let rival: Candidate | undefined
  let params: Selected['params'] = {}
  for (const row of candidates) {
    if (best && row.weight < best.weight) continue
    const fitting = fit(row, head)
    if (!fitting) continue
    rival = best && row.weight === best.weight ? best : undefined
    best = row
    params = fitting
  }
  if (best && rival) {
    const names = `${rival.operation.name} and ${best.operation.name}`
    throw new S3Error('InvalidArgument', {
      message: `The request fits two operations equally: ${names}. Send only one sub-resource.`,
    })
  }
  return best && { ...best, params }
}

/** Of a path below `/-/` that nobody answers by any method, clients of the virtual bucket must hear that there is no such object. */
function unanswered(
  { method, resource, path }: Parameters<OperationTable['select']>[0],
  rows: readonly Row[],
): S3Error {
  const reads = method === 'GET' || method === 'HEAD'
  const known = ({ operation: { on } }: Row) =>
    on.resource === 'service' && matchPath(on.path ?? '/', path) !== undefined
  if (reads && resource === 'service' && path.startsWith('/-/') && !rows.some(known))
    return new S3Error('NoSuchKey', {
      message: 'There is nothing at this path. /-/capabilities tells what there is.',
      fields: { Key: path.slice('/-/'.length) },
    })
  return new S3Error('MethodNotAllowed', { fields: { Method: method, ResourceType: resource.toUpperCase() } })
}

const NO_PARAMS: Selected['params'] = Object.freeze({})

/** The parameters in its path; undefined when the request is none for it. */
function fit({ operation }: Row, head: Parameters<OperationTable['select']>[0]): Selected['params'] | undefined {
  const { path = '/', query, header, resource } = operation.on
  if (query && !query.every((wanted) => queryHas(head.query, wanted))) return undefined
  if (header !== undefined && head.headers[header] === undefined) return undefined
  return resource === 'service' ? matchPath(path, head.path) : NO_PARAMS
}

function queryHas(query: Query, wanted: string): boolean {
  const at = wanted.indexOf('=')
  return at < 0 ? query.has(wanted) : query.get(wanted.slice(0, at)) === wanted.slice(at + 1)
}

/** Segments are what stands between the slashes as they were sent: an encoded one, `%2F`, is part of a name. */
function matchPath(template: string, path: string): Record<string, string> | undefined {
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

/**
 * A query key that the operation does not name may mean something to the client that would be lost: `PUT key?retention` must not overwrite the key.
 * So it is refused, but for those that cannot change the meaning.
 */
function refuseUnnamedKeys(
  named: ReadonlySet<string> | undefined,
  head: Parameters<OperationTable['select']>[0],
  extensions: ReadonlySet<string>,
): void {
  // A preflight has the query of the request that it asks about, and changes nothing.
  if (head.method === 'OPTIONS') return
  const reading = head.method === 'GET' || head.method === 'HEAD'
  for (const [name, value] of head.query.entries) {
    if (named?.has(name) || name === 'x-id' || isSigning(name)) continue
    // "S3 ignores query parameters that begin with x-": https://docs.aws.amazon.com/AmazonS3/latest/userguide/LogFormat.html#LogFormatCustom
    if (/^x-/i.test(name) && value !== '' && !extensions.has(name)) continue
    if (reading && value !== '' && !isSubresource(name)) continue
    throw new S3Error('NotImplemented', {
      message: `The query parameter "${name}" is not implemented for ${head.method} on ${head.resource === 'object' ? 'an' : 'a'} ${head.resource}.`,
      fields: { Parameter: name },
    })
  }
}

/** A GET of an extension answers HEAD as well, and so does one that says so. */
function methodsOf({ on, call }: AnyOperation): readonly Method[] {
  return on.method === 'GET' && (call || on.head) ? ['GET', 'HEAD'] : [on.method]
}

/** Sub-resources `x-...` of all operations. */
function extensionNames(rows: readonly Row[]): ReadonlySet<string> {
  return new Set(rows.flatMap(({ operation }) => operation.on.query ?? []).filter((name) => name.startsWith('x-')))
}

/** Throws InvalidRequest for a sub-resource beside one of an extension: neither is what is meant by both. */
function refuseSecond({ entries }: Query, extensions: ReadonlySet<string>): void {
  if (entries.length < 2) return
  const names = new Set(entries.map(([name]) => name))
  const own = [...names].filter((name) => extensions.has(name))
  if (own.length === 0) return
  const others = [...names].filter((name) => isSubresource(name) && name !== 'versionId')
  if (own.length + others.length < 2) return
  const [first, second] = [...own, ...others]
  throw new S3Error('InvalidRequest', {
    message: `The request names two sub-resources, ${first} and ${second}: send one.`,
  })
}

function isSigning(name: string): boolean {
  return /^x-(amz|cloud)-(algorithm|credential|date|expires|signedheaders|signature|security-token|content-sha256)$/i.test(
    name,
  )
}
