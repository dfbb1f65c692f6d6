import http, { type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Gateway } from '../../src/api/gateway.js'
import { createLogger } from '../../src/common/log.js'
import { createGatewayPool, type GatewayPoolOptions } from '../../src/gateway/account/create-gateway.js'
import { neutralBrand } from '../../src/gateway/brand.js'

export interface RpcRequest {
  readonly method: string
  readonly params: Record<string, unknown>
  readonly headers: http.IncomingHttpHeaders
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
  sendContinue?: boolean | ((request: IncomingMessage, response: ServerResponse) => void)
}

export interface ScriptedGateway {
  readonly url: string
  readonly calls: RpcRequest[]
  /** Requests to upload and download, with what was received of their bodies. */
  readonly transfers: { request: IncomingMessage; body: Buffer[] }[]
  count(method: string): number
  client(options?: Partial<GatewayPoolOptions>): Gateway
  /** Without a log-in. */
  anonymous(): Gateway
  close(): Promise<void>
}

/** A gateway whose every answer the test decides. Tokens are `login-1`, `login-2`, ... and `url-1`, ... */
export async function scriptedGateway(script: Script): Promise<ScriptedGateway> {
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
  const server = http.createServer(onRequest)
  if (script.sendContinue !== undefined && script.sendContinue !== true)
    server.on('checkContinue', typeof script.sendContinue === 'function' ? script.sendContinue : onRequest)
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const pools: { close(): Promise<void> }[] = []
  return {
    url,
    calls,
    transfers,
    count: (method) => calls.filter((call) => call.method === method).length,
    anonymous() {
      const pool = createGatewayPool({ url, brand: neutralBrand, log: createLogger({ level: 'silent' }) })
      pools.push(pool)
      return pool.anonymous({ accessKey: 'access', secretKey: 'secret-key' })
    },
    client(options = {}) {
      const pool = createGatewayPool({ url, brand: neutralBrand, log: createLogger({ level: 'silent' }), ...options })
      pools.push(pool)
      return pool.for({ accessKey: 'access', secretKey: 'secret-key' })
    },
    async close() {
      for (const pool of pools) await pool.close()
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
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
