import type { z } from 'zod'

/** Codes of https://www.jsonrpc.org/specification#error_object, and -32000 as gorilla/rpc v2/json2 uses it. */
export const PARSE_ERROR = -32700
export const INVALID_REQUEST = -32600
export const SERVER_ERROR = -32000

/** An error of the protocol itself, with the code it has on every gateway. */
export class RpcProtocolError extends Error {
  override readonly name = 'RpcProtocolError'
  readonly number: number

  constructor(number: number, message: string) {
    super(message)
    this.number = number
  }
}

export interface RpcRequest {
  /** Any JSON value, to be echoed; undefined for a notification, which gets no answer. */
  readonly id: unknown
  readonly method: string
  readonly params: unknown
}

const decoder = new TextDecoder('utf-8', { fatal: true })

/** Parses the body of a call. Throws RpcProtocolError. */
export function parseBody(body: Buffer): unknown {
  try {
    return JSON.parse(decoder.decode(body))
  } catch {
    throw new RpcProtocolError(PARSE_ERROR, 'The body is not JSON in UTF-8.')
  }
}

/** The `id` to answer under: null counts as none, as in gorilla/rpc. */
export function idOf(message: unknown): unknown {
  if (typeof message !== 'object' || message === null || !('id' in message)) return undefined
  return message.id ?? undefined
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

/** Reads params: an object, or an array with that object in it. Throws RpcProtocolError. */
export function readParams<T extends z.ZodObject>(schema: T, params: unknown): z.output<T> {
  const given = (Array.isArray(params) ? params[0] : params) ?? {}
  if (typeof given !== 'object' || Array.isArray(given)) {
    throw new RpcProtocolError(INVALID_REQUEST, 'params must be an object of named members, or an array with one in it')
  }
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
