import { Blocks, type Field, type HttpExchange, jsonFields, readBody, receiveBounded, textOf } from '../http/body.js'
import { HttpError } from '../http/errors.js'
import { MultipartForm } from '../http/form.js'
import { bearerOf } from '../http/routes.js'
import type { PlatformContext } from './context.js'
import { Fields, type UploadedFile } from './fields.js'
import type { Caller } from './tokens.js'
import { hasProviders, type User } from './users.js'

/**
 * Who may call: `public` ignores the Authorization header; `optional` answers anonymous callers, too, but refuses an
 * invalid token; `user` needs the JWT of a sign-in or of an API key; `signed-in` needs the JWT of a sign-in.
 */
type Access = 'public' | 'optional' | 'user' | 'signed-in'

export interface Route {
  readonly method: 'GET' | 'POST' | 'PUT'
  readonly path: string
  readonly access: Access
  /** What it does, for the table in docs/tasks.md. */
  readonly summary: string
  /** Returns the members of the answer beside `status`, which is `success` by default. Throws HttpError. */
  answer(exchange: PlatformExchange): Promise<object> | object
}

export interface PlatformExchange extends HttpExchange {
  readonly context: PlatformContext
  readonly query: URLSearchParams
  /** Values of the `:name` segments in the path of the route, percent-decoded. */
  readonly path: Readonly<Record<string, string>>
  /** Undefined for an anonymous caller, and on routes with the access `public`. */
  readonly caller: Caller | undefined
}

const SIGN_IN_FIRST = 'Sign in first: send `Authorization: Bearer` and the token.'

/** The caller by the Authorization header; undefined for an anonymous one. Throws HttpError 401 or 403. */
export async function callerOf(
  { context, request }: Pick<PlatformExchange, 'context' | 'request'>,
  access: Access,
): Promise<Caller | undefined> {
  const header = request.headers.authorization
  if (access === 'public' || (access === 'optional' && header === undefined)) return undefined
  if (header === undefined) throw unauthorized(SIGN_IN_FIRST)
  const token = bearerOf(request)
  const caller = token === undefined ? undefined : await context.tokens.callerOf(token)
  if (caller === undefined) throw unauthorized('The token is not valid or has expired. Get a new one.')
  if (access === 'signed-in' && caller.by !== 'sign-in') {
    throw new HttpError(403, 'Only the token of a sign-in may do this, not that of an API key.')
  }
  return caller
}

/** The signed-in user, on routes that need one. Throws HttpError 401 for an anonymous caller. */
export function requireUser({ caller }: Pick<PlatformExchange, 'caller'>): User {
  if (caller === undefined) throw unauthorized(SIGN_IN_FIRST)
  return caller.user
}

function unauthorized(message: string): HttpError {
  return new HttpError(401, message, ['WWW-Authenticate', 'Bearer'])
}

/**
 * True when the caller is the poster, or has the storage providers. Only they see how to reach the poster, and where
 * the CARs are: the URLs may be all that protects the contents.
 * @param poster id of a user
 */
export function isParty({ caller }: Pick<PlatformExchange, 'caller'>, poster: number): boolean {
  return caller !== undefined && (caller.user.id === poster || hasProviders(caller.user))
}

/**
 * Reads a body of JSON (an object of texts, numbers and booleans), of a urlencoded or of a multipart form; an empty
 * body has no fields. The body is in memory, within the limits of the platform. Throws HttpError: 400 when it is
 * malformed, 408 when it takes too long, 413 when it is too large, 415 for another type.
 * @param files true when the endpoint takes files, in a multipart form
 */
export async function readFields(exchange: PlatformExchange, { files = false } = {}): Promise<Fields> {
  const { limits, monotonicMs: now } = exchange.context
  const { maxFieldBytes, maxFileBytes, maxFields, bodyIdleMs: idleMs } = limits
  const type = exchange.request.headers['content-type']?.split(';')[0]?.trim().toLowerCase()
  const isForm = type === 'multipart/form-data'
  const bounds =
    isForm && files
      ? { maxBytes: maxFieldBytes + maxFileBytes, totalMs: limits.uploadMs, idleMs, now }
      : { maxBytes: maxFieldBytes, totalMs: limits.bodyMs, idleMs, now }
  if (isForm) return readMultipart(exchange, bounds)
  const fields = fieldsOf(type, await readBody(exchange, bounds))
  if (fields.length > maxFields) throw new HttpError(400, `A body has at most ${maxFields} fields.`)
  return new Fields(fields)
}

async function readMultipart(
  exchange: PlatformExchange,
  bounds: Parameters<typeof receiveBounded>[1],
): Promise<Fields> {
  const { maxFieldBytes, maxFileBytes, maxFields: maxParts } = exchange.context.limits
  const names = new Set<string>()
  const type = exchange.request.headers['content-type'] ?? ''
  const form = new MultipartForm(type, { maxFieldBytes, maxFileBytes, maxParts }, ({ field, content }) => {
    if (names.has(field)) throw new HttpError(400, `The field ${field} is given twice.`)
    names.add(field)
    return blocksOf(content)
  })
  try {
    await receiveBounded(exchange, bounds, form)
    if (form.received === 0) return new Fields([])
    const { fields, files } = await form.finish()
    return new Fields(fields, new Map(files.map(({ field, name, taken }) => [field, { name, content: taken }])))
  } catch (error) {
    await form.abort(error)
    throw error
  }
}

async function blocksOf(content: AsyncIterable<Uint8Array>): Promise<UploadedFile['content']> {
  const blocks = new Blocks()
  for await (const chunk of content) blocks.add(chunk)
  return blocks.all()
}

function fieldsOf(type: string | undefined, body: Buffer): Field[] {
  if (body.length === 0) return []
  if (type === 'application/json') return jsonFields(body)
  if (type === 'application/x-www-form-urlencoded') return formFields(textOf(body))
  throw new HttpError(
    415,
    'Send a body of the type application/json, application/x-www-form-urlencoded or multipart/form-data.',
  )
}

const BROKEN_ESCAPE = /%(?![0-9A-Fa-f]{2})/

function formFields(body: string): Field[] {
  const refusal = () => new HttpError(400, 'The form is not percent-encoded UTF-8.')
  const decode = (part: string): string => {
    try {
      return decodeURIComponent(part.replaceAll('+', ' '))
    } catch {
      throw refusal()
    }
  }
  if (BROKEN_ESCAPE.test(body)) throw refusal()
  return body
    .split('&')
    .filter((pair) => pair !== '')
    .map((pair) => {
      const at = pair.indexOf('=')
      return at < 0 ? [decode(pair), ''] : [decode(pair.slice(0, at)), decode(pair.slice(at + 1))]
    })
}

const MAX_PAGE = 1000
const MAX_OFFSET = 1_000_000_000

interface Page {
  /** Most records, 1 to 1000. */
  readonly limit: number
  readonly offset: number
}

/**
 * Reads `limit` and `offset`. Throws HttpError 400 when one is out of bounds.
 * @param usual limit of a request without one
 */
export function readPage({ context, query }: Pick<PlatformExchange, 'context' | 'query'>, usual = 10): Page {
  const limit = whole(query, 'limit', usual, 1, MAX_PAGE)
  const offset = whole(query, 'offset', 0, 0, MAX_OFFSET)
  return { limit, offset: context.offsets === 'pages' ? offset * limit : offset }
}

function whole(query: URLSearchParams, name: string, usual: number, least: number, most: number): number {
  const text = query.get(name) ?? ''
  if (text === '') return usual
  const value = /^\d{1,12}$/.test(text) ? Number(text) : Number.NaN
  if (value >= least && value <= most) return value
  throw new HttpError(400, `${name} must be a whole number from ${least} to ${most}.`)
}
