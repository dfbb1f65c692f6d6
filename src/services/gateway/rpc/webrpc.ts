import type { IncomingMessage, ServerResponse } from 'node:http'
import { setImmediate } from 'node:timers/promises'
import { errorTable } from '../error-table.js'
import { GatewayError } from '../errors.js'
import type { Exchange } from '../http/exchange.js'
import { reply, replyText } from '../http/reply.js'
import { asGatewayError } from '../http/reply-error.js'
import { receive } from '../rest/receive.js'
import { type RpcMethod, type RpcResult, StreamedResult, UI_VERSION } from './method.js'
import { methods } from './methods.js'
import {
  idOf,
  PARSE_ERROR,
  parseBody,
  RpcProtocolError,
  type RpcRequest,
  readParams,
  readRequest,
  SERVER_ERROR,
} from './protocol.js'

const JSON_TYPE = ['Content-Type', 'application/json; charset=utf-8']

/** POST webrpc: one JSON-RPC 2.0 call. Every outcome but a wrong Content-Type is HTTP 200. */
export async function webrpc(exchange: Exchange): Promise<void> {
  const { context, request } = exchange
  const type = (request.headers['content-type'] ?? '').split(';', 1)[0]?.trim() ?? ''
  if (type.toLowerCase() !== 'application/json') {
    return replyText(exchange, 415, `rpc: unrecognized Content-Type: ${type}`)
  }
  const body = await collect(exchange, context.limits.maxRpcBytes)
  let id: unknown
  try {
    const message = parseBody(body)
    id = idOf(message)
    const call = readRequest(message)
    const result = await run(exchange, call)
    if (id === undefined) return await finishSilently(exchange, result)
    if (result instanceof StreamedResult) return await stream(exchange, id, result)
    send(exchange, { jsonrpc: '2.0', result: { ...result, uiVersion: UI_VERSION }, id })
  } catch (error) {
    const known = error instanceof RpcProtocolError ? error : asGatewayError(error, exchange)
    const isParseError = error instanceof RpcProtocolError && error.number === PARSE_ERROR
    if (id === undefined && !isParseError) return reply(exchange, 200, JSON_TYPE)
    send(exchange, { jsonrpc: '2.0', error: describe(exchange, known), id: id ?? null })
  }
}

async function run(exchange: Exchange, { method: name, params }: RpcRequest): Promise<RpcResult | StreamedResult> {
  const { context, identity } = exchange
  const method = find(name)
  const members = readParams(method.params, params)
  if (method.access === 'signed' && identity !== 'owner') throw new GatewayError('NoToken')
  return method.run(members, { context, identity })
}

function find(name: string): RpcMethod {
  const method = methods.get(name)
  if (method !== undefined) return method
  // Texts of gorilla/rpc v2 (map.go).
  const parts = name.split('.')
  if (parts.length !== 2) {
    throw new RpcProtocolError(SERVER_ERROR, `rpc: service/method request ill-formed: ${JSON.stringify(name)}`)
  }
  const what = parts[0] === 'web' ? 'method' : 'service'
  throw new RpcProtocolError(SERVER_ERROR, `rpc: can't find ${what} ${JSON.stringify(name)}`)
}

function describe({ context }: Exchange, error: GatewayError | RpcProtocolError): object {
  const { message } = error
  if (error instanceof RpcProtocolError) return { code: error.number, message, data: null }
  if (!context.quirks.has('code-zero-errors')) return { code: error.number, message, data: { code: error.code } }
  const row: { plain?: true } = errorTable[error.kind]
  return { code: row.plain ? SERVER_ERROR : 0, message, data: null }
}

function send(exchange: Exchange, message: object): void {
  reply(exchange, 200, JSON_TYPE, Buffer.from(JSON.stringify(message)))
}

/** A notification: done, and not told of. */
async function finishSilently(exchange: Exchange, result: RpcResult | StreamedResult): Promise<void> {
  if (result instanceof StreamedResult) await result.parts[Symbol.asyncIterator]().return?.()
  reply(exchange, 200, JSON_TYPE)
}

/** Sends a long result part by part. What fails after the first part cuts the connection: half a result must not pass for the whole. */
async function stream(exchange: Exchange, id: unknown, result: StreamedResult): Promise<void> {
  const { response } = exchange
  const parts = result.parts[Symbol.asyncIterator]()
  let part = await parts.next()
  response.writeHead(200, JSON_TYPE)
  try {
    response.write('{"jsonrpc":"2.0","result":')
    while (!part.done) {
      if (response.destroyed) return
      if (response.write(part.value)) await setImmediate()
      else await drained(response)
      part = await parts.next()
    }
    response.end(`,"id":${JSON.stringify(id)}}`)
  } catch (error) {
    asGatewayError(error, exchange)
    response.destroy()
  }
}

/** Resolves when more may be written, or nothing can be any more. */
function drained(response: ServerResponse): Promise<void> {
  return new Promise((resolve) => {
    const done = (): void => {
      response.off('drain', done).off('close', done)
      resolve()
    }
    response.on('drain', done).on('close', done)
  })
}

async function collect({ context, request, body }: Exchange, most: number): Promise<Buffer> {
  if (Number(request.headers['content-length'] ?? 0) > most) throw new GatewayError('EntityTooLarge')
  body.open()
  return receiveAtMost(request, most, context.limits.uploadIdleMs)
}

/** A body of unknown length up to a bound. */
async function receiveAtMost(request: IncomingMessage, most: number, idleMs: number): Promise<Buffer> {
  const chunks: Buffer[] = []
  let size = 0
  const tooLarge = (): Promise<void> => Promise.reject(new GatewayError('EntityTooLarge'))
  await receive(
    request,
    undefined,
    {
      write(chunk) {
        chunks.push(chunk)
        size += chunk.length
        return size <= most
      },
      ready: tooLarge,
    },
    idleMs,
  )
  return Buffer.concat(chunks)
}
