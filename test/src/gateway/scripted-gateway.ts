import { createServer, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from 'node:http'
import type { Test } from 'tap'
import { createLogger } from '../../../common/log.js'
import type { Gateway } from '../../../src/api/gateway.js'
import {
  createGatewayPool,
  type GatewayPool,
  type GatewayPoolOptions,
} from '../../../src/gateway/account/create-gateway.js'
import { neutralBrand } from '../../../src/gateway/brand.js'
import { listen } from '../../support/server/listen.js'

interface RpcRequest {
  readonly method: string
  readonly params: Record<string, unknown>
  readonly headers: IncomingHttpHeaders
}

/** Thrown by a handler: an error under HTTP 200, as gateways of this interface send it. */
export class RpcFailure extends Error {}

export interface Script {
  /** By method; what it returns is the `result`. */
  rpc?: Record<string, (params: Record<string, unknown>, request: RpcRequest) => unknown>
  /** Sees every JSON-RPC request first; true when it has answered. */
  before?: (request: RpcRequest, response: ServerResponse) => boolean
  rest?: (request: IncomingMessage, response: ServerResponse) => void
  /** Whether `Expect: 100-continue` gets its answer from node. Default true. */
  sendContinue?: boolean
}

export interface ScriptedGateway {
  readonly calls: RpcRequest[]
  /** Requests to upload and download, with what was received of their bodies. */
  readonly transfers: { request: IncomingMessage; body: Buffer[] }[]
  count(method: string): number
  pool(options?: Partial<GatewayPoolOptions>): GatewayPool
  /** Of a pool of its own. */
  client(options?: Partial<GatewayPoolOptions>): Gateway
  /** Without a log-in. */
  anonymous(): Gateway
}

/**
 * A gateway whose every answer the test decides, until the test ends. Tokens are `login-1`, `login-2`, ... and
 * `url-1`, ...
 */
export async function scriptedGateway(t: Test, script: Script): Promise<ScriptedGateway> {
  const calls: RpcRequest[] = []
  const transfers: ScriptedGateway['transfers'] = []
  let logins = 0
  let urlTokens = 0
  const rpc: NonNullable<Script['rpc']> = {
    'web.Login': () => ({ token: `login-${++logins}` }),
    'web.CreateURLToken': () => ({ token: `url-${++urlTokens}` }),
    'web.ServerInfo': () => ({ GatewayVersion: '1' }),
    'web.FenceUpload': () => ({}),
    ...script.rpc,
  }

  async function answerRpc(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk as Buffer)
    const { method, params } = JSON.parse(Buffer.concat(chunks).toString()) as RpcRequest
    const call = { method, params, headers: request.headers }
    calls.push(call)
    if (script.before?.(call, response)) return
    response.setHeader('content-type', 'application/json; charset=utf-8')
    try {
      const handler = rpc[method]
      if (!handler) throw new RpcFailure(`rpc: can't find method "${method}"`)
      response.end(JSON.stringify({ jsonrpc: '2.0', result: handler(params, call), id: 1 }))
    } catch (error) {
      const message = (error as Error).message
      response.end(JSON.stringify({ jsonrpc: '2.0', error: { code: 0, message, data: null }, id: 1 }))
    }
  }

  const onRequest = (request: IncomingMessage, response: ServerResponse): void => {
    if (request.url === '/gateway/webrpc') {
      answerRpc(request, response).catch((error: unknown) => response.destroy(error as Error))
      return
    }
    const transfer = { request, body: [] as Buffer[] }
    transfers.push(transfer)
    request.on('data', (chunk: Buffer) => transfer.body.push(chunk))
    request.on('error', () => {})
    script.rest?.(request, response)
  }
  const server = createServer(onRequest)
  if (script.sendContinue === false) server.on('checkContinue', onRequest)
  const url = await listen(server, t)
  const account = { accessKey: 'access', secretKey: 'secret-key' }
  const poolOf = (options: Partial<GatewayPoolOptions> = {}) => {
    const pool = createGatewayPool({ url, brand: neutralBrand, log: createLogger({ level: 'silent' }), ...options })
    t.teardown(() => pool.close())
    return pool
  }
  return {
    calls,
    transfers,
    count: (method) => calls.filter((call) => call.method === method).length,
    pool: poolOf,
    anonymous: () => poolOf().anonymous(account),
    client: (options) => poolOf(options).for(account),
  }
}

/** Members of web.ServerInfo of a gateway with these features. */
export function withFeatures(...features: string[]): Script['rpc'] {
  return { 'web.ServerInfo': () => ({ GatewayVersion: '1', GatewayFeatures: features }) }
}

export const ALL_FEATURES = ['paged-listing', 'object-head', 'exact-remove', 'any-key', 'write-fences']

export async function read(download: { consume(sink: (chunk: Buffer) => void): Promise<void> }): Promise<Buffer> {
  const chunks: Buffer[] = []
  await download.consume((chunk) => void chunks.push(chunk))
  return Buffer.concat(chunks)
}
