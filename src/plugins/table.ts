import { S3Error } from '../../common/errors/s3-error.js'
import type { Query } from '../../common/query.js'
import type { Caller } from '../api/identity.js'
import type { AnyOperation, OperationRow } from '../api/operation.js'
import type { Plugin } from '../api/plugin.js'
import type { Method, RequestHead, Resource } from '../api/request.js'
import { unsupportedAlgorithm } from '../auth/signatures/parsed-signature.js'
import { isCoveredParameter, VERSION_2 } from '../auth/signatures/version-2.js'
import { decodePath } from '../http/addressing.js'
import { METHODS } from '../http/read-request.js'
import {
  refuseDemands,
  refuseMetadata,
  refuseRepeated,
  refuseSecond,
  refuseUnnamedKeys,
  subResourcesOf,
} from './refuse-keys.js'

export type Row = OperationRow

export interface Selected extends Row {
  readonly params: Readonly<Record<string, string>>
}

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
  const subResources = subResourcesOf(rows.map(({ operation }) => operation))
  /** The methods by which the request would have an operation. */
  const allowed = (head: Parameters<OperationTable['select']>[0]) =>
    METHODS.filter((method) => (slots.get(slotName(method, head.resource)) ?? []).some(({ route }) => fit(route, head)))
  return {
    rows,
    select(head) {
      refuseSecond(head.query, subResources)
      const candidates = slots.get(slotName(head.method, head.resource)) ?? []
      const found = mostSpecific(candidates, head)
      refuseUnnamedKeys(found?.named, head, subResources)
      if (!found) throw unanswered(head, rows, allowed(head))
      refuseRepeated(found.operation, head)
      refuseDemands(head.headers, found.operation.on.headers)
      refuseMetadata(found.operation, head.headers)
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
  readonly named: ReadonlySet<string>
  readonly route: Route
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
    const fitting = fit(row.route, head)
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
 * clients of the virtual bucket. Requests of S3 Control, which read-request.ts tells from those to a bucket, are named.
 */
function unanswered(
  { method, resource, path }: Parameters<OperationTable['select']>[0],
  rows: readonly Row[],
  allowed: readonly Method[],
): S3Error {
  const reads = method === 'GET' || method === 'HEAD'
  const known = ({ operation: { on } }: Row) =>
    on.resource === 'service' && matchPath(on.path ?? '/', path) !== undefined
  const lists = rows.some(({ operation: { on } }) => on.path === '/-/capabilities')
  if (reads && resource === 'service' && path.startsWith('/-/') && !rows.some(known))
    return new S3Error('NoSuchKey', {
      message: `There is nothing at this path.${lists ? ' /-/capabilities lists what exists.' : ''}`,
      fields: { Key: path.slice('/-/'.length) },
    })
  if (resource === 'service' && path.startsWith('/v20180820/'))
    return new S3Error('NotImplemented', {
      message: `The call ${method} ${path.slice(0, 100)} of S3 Control is not implemented on this server. The plugin batch has those about jobs.`,
    })
  return new S3Error('MethodNotAllowed', {
    fields: { Method: method, ResourceType: resource.toUpperCase() },
    // https://www.rfc-editor.org/rfc/rfc9110#section-15.5.6
    headers: { allow: allowed.join(', ') },
  })
}

/** A GET call of an extension also answers HEAD, and so does a GET operation that declares `head`. */
function methodsOf({ on, call }: AnyOperation): readonly Method[] {
  return on.method === 'GET' && (call || on.head) ? ['GET', 'HEAD'] : [on.method]
}

/** The conditions for a request, with all members: routes as plugins write them lack some, and are slow to read. */
type Route = Required<Pick<AnyOperation['on'], 'resource' | 'path' | 'query'>> & {
  readonly header: string | undefined
}

type Params = Readonly<Record<string, string>>

const NO_PARAMS: Params = Object.freeze({})

/** Returns the path parameters of a matching request; undefined if it does not match. */
function fit(
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
function matchPath(template: string, path: string): Params | undefined {
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
 * The path of the requests of an operation, with names of its parameters: `/{Bucket}/{Key}`.
 * @param key how the key of an object is named
 */
export function pathOf({ path = '/', resource }: AnyOperation['on'], key = '{Key}'): string {
  return { service: path, bucket: '/{Bucket}', object: `/{Bucket}/${key}` }[resource]
}

export function targetText({ on }: AnyOperation): string {
  const query = (on.query ?? []).map((name) => (/^x-[^=]*$/.test(name) ? `${name}=` : name))
  return `${pathOf(on)}${query.length > 0 ? `?${query.join('&')}` : ''}`
}

/** Formats the route of an operation as a request line: `GET /{Bucket}?x-deal=`. */
export function routeText(operation: AnyOperation): string {
  const { method, header } = operation.on
  return `${method} ${targetText(operation)}${header ? ` with ${header}` : ''}`
}

/** `list-type` selects a form of the listing that the signed path names. */
const FORMS = ['list-type']

/**
 * Refuses signature version 2 for everything that S3 itself does not have: the signature covers neither sub-resources
 * of extensions nor the body, so that a holder of it could choose another call, or other terms.
 * @throws S3Error InvalidRequest
 */
export function refuseVersion2({ on, call }: AnyOperation, caller: Caller | undefined): void {
  if (caller?.signatureVersion !== VERSION_2) return
  const names = (on.query ?? []).map((wanted) => wanted.split('=')[0] ?? '')
  const covered = names.every((name) => isCoveredParameter(name) || FORMS.includes(name))
  const ownPath = on.resource === 'service' && (on.path ?? '/') !== '/'
  if (call || ownPath || !covered) throw unsupportedAlgorithm(VERSION_2)
}
