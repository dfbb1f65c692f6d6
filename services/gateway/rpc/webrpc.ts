import { JSON_TYPE, reply } from '../../http/reply.js'
import { clientOf } from '../../http/server.js'
import type { ReadContext } from '../context.js'
import type { GatewayError } from '../errors.js'
import { asGatewayError, collect, type ExchangeIn, type ReadExchange, replyText, sendParts } from '../exchange.js'
import { type AnyResult, type RpcMethod, StreamedResult, UI_VERSION, WrittenResult } from './method.js'
import { idOf, parseBody, type RpcId, RpcProtocolError, type RpcRequest, readParams, SERVER_ERROR } from './protocol.js'

/** The methods by the names that clients call. */
type Methods<C extends ReadContext> = ReadonlyMap<string, RpcMethod<C>>

/**
 * POST webrpc: one JSON-RPC 2.0 call. Every outcome except a wrong Content-Type is HTTP 200.
 * @param read takes the parsed body for a call, or throws RpcProtocolError
 */
export function webrpc<C extends ReadContext>(
  methods: Methods<C>,
  read: (message: unknown) => RpcRequest,
): (exchange: ExchangeIn<C>) => Promise<void> {
  return (exchange) => answer(exchange, methods, read)
}

async function answer<C extends ReadContext>(
  exchange: ExchangeIn<C>,
  methods: Methods<C>,
  read: (message: unknown) => RpcRequest,
): Promise<void> {
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
    const result = await run(exchange, methods, read(message))
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

async function run<C extends ReadContext>(
  exchange: ExchangeIn<C>,
  methods: Methods<C>,
  { method: name, params }: RpcRequest,
): Promise<AnyResult> {
  const { context, identity, request } = exchange
  const method = find(methods, name, context)
  const members = readParams(method.params, params)
  return method.run(members, { context, identity, client: clientOf(request) })
}

function find<C extends ReadContext>(methods: Methods<C>, name: string, { features }: C): RpcMethod<C> {
  const method = methods.get(name)
  if (method !== undefined && (method.feature === undefined || features.has(method.feature))) return method
  // Error texts of gorilla/rpc v2 (map.go).
  const parts = name.split('.')
  if (parts.length !== 2) {
    throw new RpcProtocolError(SERVER_ERROR, `rpc: service/method request ill-formed: ${JSON.stringify(name)}`)
  }
  const service = `${parts[0]}.`
  const what = [...methods.keys()].some((known) => known.startsWith(service)) ? 'method' : 'service'
  throw new RpcProtocolError(SERVER_ERROR, `rpc: can't find ${what} ${JSON.stringify(name)}`)
}

function toRpcError({ context }: ReadExchange, error: GatewayError | RpcProtocolError): object {
  if (error instanceof RpcProtocolError) return { code: error.number, message: error.message, data: null }
  return context.errors.rpc(error)
}

function send(exchange: ReadExchange, message: object): void {
  sendText(exchange, JSON.stringify(message))
}

function sendText(exchange: ReadExchange, text: string): void {
  reply(exchange, 200, JSON_TYPE, Buffer.from(text))
}

function written(id: RpcId, { members }: WrittenResult): string {
  return `{"jsonrpc":"2.0","result":{${members},"uiVersion":"${UI_VERSION}"},"id":${JSON.stringify(id)}}`
}

/** Consumes the result of a notification without a reply. */
async function finishSilently(exchange: ReadExchange, result: AnyResult): Promise<void> {
  if (result instanceof StreamedResult) await result.parts[Symbol.asyncIterator]().return?.()
  reply(exchange, 200, JSON_TYPE)
}

function stream(exchange: ReadExchange, id: RpcId, result: StreamedResult): Promise<void> {
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
