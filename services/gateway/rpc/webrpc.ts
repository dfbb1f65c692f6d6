import { JSON_TYPE, reply } from '../../http/reply.js'
import { clientOf } from '../../http/server.js'
import type { GatewayContext } from '../context.js'
import { errorTable, type GatewayError } from '../errors.js'
import { asGatewayError, collect, type GatewayExchange, replyText, sendParts } from '../exchange.js'
import { type AnyResult, type RpcMethod, StreamedResult, UI_VERSION, WrittenResult } from './method.js'
import { methods } from './methods.js'
import {
  idOf,
  parseBody,
  type RpcId,
  RpcProtocolError,
  type RpcRequest,
  readParams,
  readRequest,
  SERVER_ERROR,
} from './protocol.js'

/** POST webrpc: one JSON-RPC 2.0 call. Every outcome except a wrong Content-Type is HTTP 200. */
export async function webrpc(exchange: GatewayExchange): Promise<void> {
  const { context, request } = exchange
  const type = (request.headers['content-type'] ?? '').split(';', 1)[0]?.trim() ?? ''
  if (type.toLowerCase() !== 'application/json') {
    return replyText(exchange, 415, `rpc: unrecognized Content-Type: ${type}`)
  }
  const body = await collect(exchange, context.limits.maxRpcBytes)
  let id: RpcId | undefined
  try {
    const message = parseBody(body)
    id = idOf(message)
    const call = readRequest(message)
    const result = await run(exchange, call)
    if (id === undefined) return await finishSilently(exchange, result)
    if (result instanceof StreamedResult) return await stream(exchange, id, result)
    if (result instanceof WrittenResult) return sendText(exchange, written(id, result))
    send(exchange, { jsonrpc: '2.0', result: { ...result, uiVersion: UI_VERSION }, id })
  } catch (error) {
    const known = error instanceof RpcProtocolError ? error : asGatewayError(error, exchange)
    const idUnknown = error instanceof RpcProtocolError && error.idUnknown
    if (id === undefined && !idUnknown) return reply(exchange, 200, JSON_TYPE)
    send(exchange, { jsonrpc: '2.0', error: toRpcError(exchange, known), id: id ?? null })
  }
}

async function run(exchange: GatewayExchange, { method: name, params }: RpcRequest): Promise<AnyResult> {
  const { context, identity, request } = exchange
  const method = find(name, context)
  const members = readParams(method.params, params, !context.quirks.has('no-text-params'))
  return method.run(members, { context, identity, client: clientOf(request) })
}

function find(name: string, { quirks, features }: GatewayContext): RpcMethod {
  const service = quirks.has('capital-service-word') ? 'Web' : 'web'
  const method = name.startsWith(`${service}.`) ? methods.get(`web.${name.slice(service.length + 1)}`) : undefined
  if (method !== undefined && (method.feature === undefined || features.has(method.feature))) return method
  // Error texts of gorilla/rpc v2 (map.go).
  const parts = name.split('.')
  if (parts.length !== 2) {
    throw new RpcProtocolError(SERVER_ERROR, `rpc: service/method request ill-formed: ${JSON.stringify(name)}`)
  }
  const what = parts[0] === service ? 'method' : 'service'
  throw new RpcProtocolError(SERVER_ERROR, `rpc: can't find ${what} ${JSON.stringify(name)}`)
}

function toRpcError({ context }: GatewayExchange, error: GatewayError | RpcProtocolError): object {
  if (error instanceof RpcProtocolError) return { code: error.number, message: error.message, data: null }
  const message = error.rpcText(context.quirks)
  if (!context.quirks.has('code-zero-errors'))
    return { code: error.number, message, data: { code: error.code, fence: error.subject.fence } }
  const row: { plain?: true } = errorTable[error.kind]
  return { code: row.plain ? SERVER_ERROR : 0, message, data: null }
}

function send(exchange: GatewayExchange, message: object): void {
  sendText(exchange, JSON.stringify(message))
}

function sendText(exchange: GatewayExchange, text: string): void {
  reply(exchange, 200, JSON_TYPE, Buffer.from(text))
}

function written(id: RpcId, { members }: WrittenResult): string {
  return `{"jsonrpc":"2.0","result":{${members},"uiVersion":"${UI_VERSION}"},"id":${JSON.stringify(id)}}`
}

/** Consumes the result of a notification without a reply. */
async function finishSilently(exchange: GatewayExchange, result: AnyResult): Promise<void> {
  if (result instanceof StreamedResult) await result.parts[Symbol.asyncIterator]().return?.()
  reply(exchange, 200, JSON_TYPE)
}

function stream(exchange: GatewayExchange, id: RpcId, result: StreamedResult): Promise<void> {
  return sendParts(exchange, JSON_TYPE, inEnvelope(id, result))
}

async function* inEnvelope(id: RpcId, { parts }: StreamedResult): AsyncGenerator<string> {
  let start = '{"jsonrpc":"2.0","result":'
  for await (const part of parts) {
    yield start + part
    start = ''
  }
  yield `,"id":${JSON.stringify(id)}}`
}
