import { S3Error } from '../../common/errors/s3-error.js'
import { decodePath } from '../../request/addressing/decode-path.js'
import type { Query } from '../../request/query.js'
import { repeatedParameter } from '../../request/query.js'
import type { Method, RequestHead, Resource } from '../../request/s3-request.js'
import type { AnyOperation, Plugin } from '../forms/plugin.js'
import { refuseDemands } from './demands.js'
import { routeText } from './route-text.js'
import { isSubresource } from './subresources.js'

/** A row of the table: an operation and the plugin that owns it. */
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
  /**
   * Selects the operation that answers a request. Throws S3Error MethodNotAllowed, NoSuchKey below `/-/`,
   * NotImplemented, InvalidArgument.
   */
  select(head: Pick<RequestHead, 'method' | 'resource' | 'path' | 'query' | 'headers'>): Selected
}

/** Throws Error, naming both owners, if two operations match the same request equally well. */
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
      refuseRepeated(found, head)
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

/** Returns a sentence for each route that two operations declare, naming both owners. */
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

/** A row with the values that every selection needs. */
interface Candidate extends Row {
  /**
   * Specificity: the number of conditions on query and headers, then the number of literal path segments. The match
   * with the highest weight wins.
   */
  readonly weight: number
  /** Query keys that the operation declares. */
  readonly named: ReadonlySet<string>
  /** The conditions for a request, with all members: routes as plugins write them lack some, and are slow to read. */
  readonly route: Required<Pick<AnyOperation['on'], 'resource' | 'path' | 'query'>> & {
    readonly header: string | undefined
  }
}

/** More segments than any path has. */
const MAX_SEGMENTS = 1000

type Match = Pick<Candidate, 'named'> & Selected

function candidate(row: Row): Candidate {
  const { query = [], params = [], header, path = '/', resource } = row.operation.on
  const literal = path.split('/').filter((segment) => !segment.startsWith('{')).length
  return {
    ...row,
    weight: query.length + (header === undefined ? 0 : 1) + literal / MAX_SEGMENTS,
    named: new Set([...query, ...params].map((name) => name.split('=')[0] as string)),
    route: { resource, path, query, header },
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
      message: `The request matches two operations equally: ${names}. Send only one sub-resource.`,
    })
  }
  return best && { plugin: best.plugin, operation: best.operation, named: best.named, params }
}

/**
 * Returns the error of a request without an operation. A path below `/-/` that no operation has is a missing object to
 * clients of the virtual bucket.
 */
function unanswered(
  { method, resource, path }: Parameters<OperationTable['select']>[0],
  rows: readonly Row[],
): S3Error {
  const reads = method === 'GET' || method === 'HEAD'
  const known = ({ operation: { on } }: Row) =>
    on.resource === 'service' && matchPath(on.path ?? '/', path) !== undefined
  if (reads && resource === 'service' && path.startsWith('/-/') && !rows.some(known))
    return new S3Error('NoSuchKey', {
      message: 'There is nothing at this path. /-/capabilities lists what exists.',
      fields: { Key: path.slice('/-/'.length) },
    })
  return new S3Error('MethodNotAllowed', { fields: { Method: method, ResourceType: resource.toUpperCase() } })
}

const NO_PARAMS: Selected['params'] = Object.freeze({})

/** Returns the path parameters of a matching request; undefined if it does not match. */
function fit({ route }: Candidate, head: Parameters<OperationTable['select']>[0]): Selected['params'] | undefined {
  const { path, query, header, resource } = route
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
 * Refuses query keys that the operation does not declare, because ignoring them could change what the client means:
 * `PUT key?retention` must not overwrite the key. Keys that cannot change the meaning are ignored.
 */
function refuseUnnamedKeys(
  named: ReadonlySet<string> | undefined,
  head: Parameters<OperationTable['select']>[0],
  extensions: ReadonlySet<string>,
): void {
  if (head.query.entries.length === 0) return
  // A preflight has the query of the request that it announces, and changes nothing.
  if (head.method === 'OPTIONS') return
  const reading = head.method === 'GET' || head.method === 'HEAD'
  const link = head.query.has('AWSAccessKeyId')
  for (const [name, value] of head.query.entries) {
    if (named?.has(name) || name === 'x-id' || isSigning(name) || (link && isVersion2(name))) continue
    // "S3 ignores query parameters that begin with x-":
    // https://docs.aws.amazon.com/AmazonS3/latest/userguide/LogFormat.html#LogFormatCustom
    if (/^x-/i.test(name) && value !== '' && !extensions.has(name)) continue
    if (reading && value !== '' && !isSubresource(name)) continue
    if (name === 'list-type' && reading) throw unknownListType(value)
    throw new S3Error('NotImplemented', {
      message: `The query parameter "${name}" is not implemented for ${head.method} on ${head.resource === 'object' ? 'an' : 'a'} ${head.resource}.`,
      fields: { Parameter: name },
    })
  }
}

/**
 * Refuses repeated parameters, because a server that reads the first value and an intermediary that reads the last
 * would disagree about the request. Names that begin with `x-` are exempt: the signature check covers its own, headers
 * that presigners move into the query may have several values, and the others have no meaning here. A call of an
 * extension reads its own parameters by its schema, which may have lists.
 */
function refuseRepeated(
  { operation }: Row,
  { method, query: { entries } }: Parameters<OperationTable['select']>[0],
): void {
  if (entries.length < 2 || method === 'OPTIONS') return
  const seen = new Set<string>()
  for (const [name] of entries) {
    const once = operation.on.query?.includes(name) || !(/^x-/i.test(name) || operation.call)
    if (once && seen.has(name)) throw repeatedParameter(name)
    seen.add(name)
  }
}

/** A GET call of an extension also answers HEAD, and so does a GET operation that declares `head`. */
function methodsOf({ on, call }: AnyOperation): readonly Method[] {
  return on.method === 'GET' && (call || on.head) ? ['GET', 'HEAD'] : [on.method]
}

/** Returns the sub-resources `x-...` of all operations. */
function extensionNames(rows: readonly Row[]): ReadonlySet<string> {
  return new Set(rows.flatMap(({ operation }) => operation.on.query ?? []).filter((name) => name.startsWith('x-')))
}

/** Throws InvalidRequest for a second sub-resource beside one of an extension, because the request is ambiguous. */
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

function unknownListType(value: string): S3Error {
  return new S3Error('InvalidArgument', {
    message: 'Invalid List Type specified in Request',
    fields: { ArgumentName: 'list-type', ArgumentValue: value.slice(0, 100) },
  })
}

/** Parameters of a URL presigned with version 2. The authenticator has verified every URL that has such a key id. */
function isVersion2(name: string): boolean {
  return /^(AWSAccessKeyId|Signature|Expires|content-(md5|type))$/.test(name)
}
