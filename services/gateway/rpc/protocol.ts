import type { z } from 'zod'
import { hasLoneSurrogate, isDeeper } from '../../../common/json.js'

/** Codes of https://www.jsonrpc.org/specification#error_object, and -32000 as gorilla/rpc v2/json2 uses it. */
const PARSE_ERROR = -32700
const INVALID_REQUEST = -32600
export const SERVER_ERROR = -32000

/** An error of the JSON-RPC protocol, with the code that every gateway uses. */
export class RpcProtocolError extends Error {
  override readonly name = 'RpcProtocolError'
  readonly number: number
  /** True when the call may not be a notification; it is then answered with `id` null. */
  readonly idUnknown: boolean

  constructor(number: number, message: string, { idUnknown = number === PARSE_ERROR } = {}) {
    super(message)
    this.number = number
    this.idUnknown = idUnknown
  }
}

/** https://www.jsonrpc.org/specification#request_object */
export type RpcId = string | number

export interface RpcRequest {
  /** Echoed in the reply; undefined for a notification, which gets no reply. */
  readonly id: RpcId | undefined
  readonly method: string
  readonly params: unknown
}

/** Deeper than the nesting of any call in the interface. */
const MAX_DEPTH = 16

const decoder = new TextDecoder('utf-8', { fatal: true })

/** Parses the body of a call. Throws RpcProtocolError. */
export function parseBody(body: Buffer): unknown {
  let text: string
  let message: unknown
  try {
    text = decoder.decode(body)
    message = JSON.parse(text)
  } catch {
    throw new RpcProtocolError(PARSE_ERROR, 'The body is not JSON in UTF-8.')
  }
  if (hasLoneSurrogate(text)) {
    throw new RpcProtocolError(INVALID_REQUEST, 'The body has an escape that is no Unicode character.', {
      idUnknown: true,
    })
  }
  if (isDeeper(message, MAX_DEPTH)) {
    throw new RpcProtocolError(PARSE_ERROR, `The body is nested more than ${MAX_DEPTH} levels deep.`)
  }
  return message
}

/**
 * The `id` of the reply. Null counts as absent, as in gorilla/rpc. Throws RpcProtocolError for an `id` that the
 * specification does not allow.
 */
export function idOf(message: unknown): RpcId | undefined {
  if (typeof message !== 'object' || message === null || !('id' in message)) return undefined
  const { id } = message
  if (id === null || id === undefined) return undefined
  if (typeof id !== 'string' && typeof id !== 'number') {
    throw new RpcProtocolError(INVALID_REQUEST, 'id must be a string, a number or null', { idUnknown: true })
  }
  return id
}

export function readRequest(message: unknown): RpcRequest {
  if (typeof message !== 'object' || message === null || Array.isArray(message)) {
    throw new RpcProtocolError(PARSE_ERROR, 'The call must be a JSON object.')
  }
  const { jsonrpc, method, params } = message as Record<string, unknown>
  if (jsonrpc !== '2.0') throw new RpcProtocolError(INVALID_REQUEST, 'jsonrpc must be 2.0')
  if (typeof method !== 'string') throw new RpcProtocolError(INVALID_REQUEST, 'method must be a string')
  return { id: idOf(message), method, params }
}

/** The refusal of params that are no object. */
export function noParams(): RpcProtocolError {
  return new RpcProtocolError(INVALID_REQUEST, 'params must be an object of named members, or an array with one in it')
}

/**
 * Reads params: an object, or an array with one object. '' stands for no params, as the interface writes it for calls
 * without any. Throws RpcProtocolError.
 */
export function readParams<T extends z.ZodObject>(schema: T, params: unknown): z.output<T> {
  const given = (Array.isArray(params) ? params[0] : params === '' ? {} : params) ?? {}
  if (typeof given !== 'object' || Array.isArray(given)) throw noParams()
  const names = new Map(Object.keys(schema.shape).map((name) => [name.toLowerCase(), name]))
  const members: Record<string, unknown> = {}
  for (const [name, value] of Object.entries(given)) {
    const known = names.get(name.toLowerCase())
    if (known !== undefined) members[known] = value
  }
  const result = schema.safeParse(members)
  if (result.success) return result.data
  const problems = result.error.issues.map((issue) => `${issue.path.join('.')}: ${issue.message}`)
  throw new RpcProtocolError(INVALID_REQUEST, `Invalid params: ${problems.join('; ')}`)
}
