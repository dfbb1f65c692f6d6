import { type IncomingHttpHeaders, request } from 'node:http'
import { connect } from 'node:net'
import type { Test } from 'tap'
import { openAccountRegistry } from '../../../services/gateway/accounts/account-registry.js'
import type { KeyPair } from '../../../services/gateway/accounts/key-pair.js'
import { type GatewayOptions, type NetworkOptions, type Services, startServices } from '../../../services/index.js'
import { temporaryFolder } from '../../support/content/folders.js'
import { databaseOf } from '../engine.js'

export interface Answer {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  readonly body: Buffer
  readonly text: string
}

export interface RpcError {
  readonly code: number
  readonly message: string
  readonly data: { code: string } | null
}

interface SendOptions {
  readonly method?: string
  readonly headers?: Record<string, string | number>
  readonly body?: Buffer | string
}

export const MOZILLA = 'Mozilla/5.0 (test)'

/** A number that no other write of this process has, and higher than all before. */
export const fence = (() => {
  let last = Date.now() * 1000 + 1e9
  // Writes without a fence get the next number.
  return () => (last += 1000)
})()

/** Services over a temp folder, stopped with the test, and a client that is logged in. */
export async function startGateway(
  t: Test,
  gateway: Partial<GatewayOptions> = {},
  network: NetworkOptions = {},
): Promise<Client> {
  const services = await start(temporaryFolder(t), gateway, network)
  t.teardown(() => services.stop())
  return connectTo(services, gateway.brand?.path)
}

export async function start(
  data: string,
  gateway: Partial<GatewayOptions> = {},
  network: NetworkOptions = {},
): Promise<Services> {
  const database = await databaseOf(data)
  return startServices({ data, gateway: { host: '127.0.0.1', port: 0, quirks: [], database, ...gateway }, network })
}

export async function connectTo({ gateway }: Pick<Services, 'gateway'>, path = 'gateway'): Promise<Client> {
  return logIn(gateway.url, await gateway.credentials(), path)
}

export async function logIn(url: string, { accessKey, secretKey }: KeyPair, path = 'gateway'): Promise<Client> {
  const client = new Client(url, path)
  const { token } = await client.call('Login', { username: accessKey, password: secretKey })
  client.token = token
  return client
}

/** A gateway with its first account and a second one, each logged in, and a client without a log-in. */
export async function twoAccounts(t: Test, options: Partial<GatewayOptions> = {}, network: NetworkOptions = {}) {
  const data = temporaryFolder(t)
  const services = await start(data, options, network)
  t.teardown(() => services.stop())
  const registry = await openAccountRegistry(data, await databaseOf(data))
  t.teardown(() => registry.close())
  const { accessKey, secretKey } = await registry.add('second')
  const keys = { accessKey, secretKey }
  const { url } = services.gateway
  const [owner, other] = [await connectTo(services), await logIn(url, keys)]
  return { services, registry, owner, other, keys, anyone: new Client(url, 'gateway') }
}

/** Percent-encodes every byte but the plainest, slashes kept. */
export function encodeKey(key: string): string {
  return Buffer.from(key)
    .toString('latin1')
    .replace(/[^A-Za-z0-9/_]/g, (character) => `%${character.charCodeAt(0).toString(16).padStart(2, '0')}`)
}

export class Client {
  readonly url: string
  readonly path: string
  token: string | undefined

  constructor(url: string, path: string) {
    this.url = url
    this.path = path
  }

  /** Sends any request; `target` goes out as it is. */
  send(target: string, { method = 'GET', headers = {}, body }: SendOptions = {}): Promise<Answer> {
    const { hostname, port } = new URL(this.url)
    return new Promise((resolve, reject) => {
      const sent = request({ hostname, port, path: target, method, agent: false, headers }, (response) => {
        const chunks: Buffer[] = []
        response.on('data', (chunk) => chunks.push(chunk))
        response.on('error', reject)
        response.on('end', () => {
          const all = Buffer.concat(chunks)
          const { statusCode = 0, headers } = response
          resolve({ status: statusCode, headers, body: all, text: all.toString() })
        })
      })
      sent.on('error', reject)
      // Not `end(body)`, no text and no flushHeaders: with those Node takes header bytes, or a Content-Disposition, for
      // UTF-8.
      if (body !== undefined && body.length > 0) sent.write(Buffer.from(body as string))
      sent.end()
    })
  }

  /** What goes with every request of a logged-in client. */
  headers(): Record<string, string> {
    return { 'user-agent': MOZILLA, ...(this.token !== undefined && { authorization: `Bearer ${this.token}` }) }
  }

  rpcRaw(body: string | Buffer, headers: Record<string, string> = {}): Promise<Answer> {
    return this.send(`/${this.path}/webrpc`, {
      method: 'POST',
      headers: { ...this.headers(), 'content-type': 'application/json', ...headers },
      body,
    })
  }

  /** The result of `web.<method>`; rejects with the error object. */
  // biome-ignore lint/suspicious/noExplicitAny: tests look at results of any shape
  async call(method: string, params: unknown = {}): Promise<any> {
    const answer = await this.rpcRaw(JSON.stringify({ jsonrpc: '2.0', id: 1, method: `web.${method}`, params }))
    if (answer.status !== 200) throw new Error(`HTTP ${answer.status}: ${answer.text}`)
    const { result, error } = JSON.parse(answer.text)
    if (error !== undefined) throw Object.assign(new Error(error.message), error)
    return result
  }

  /** The error of `web.<method>`. */
  async failure(method: string, params: unknown = {}): Promise<RpcError> {
    try {
      await this.call(method, params)
    } catch (error) {
      const { code, message, data } = error as RpcError
      return { code, message, data }
    }
    throw new Error(`web.${method} should have failed.`)
  }

  put(bucket: string, key: string, body: Buffer | string, headers: Record<string, string> = {}): Promise<Answer> {
    return this.send(`/${this.path}/upload/${bucket}/${encodeKey(key)}`, {
      method: 'PUT',
      // Content-Length last: Node decodes a Content-Disposition behind it as UTF-8.
      headers: { ...this.headers(), ...headers, 'content-length': Buffer.byteLength(body) },
      body,
    })
  }

  get(bucket: string, key: string, headers: Record<string, string> = {}, method = 'GET'): Promise<Answer> {
    return this.send(`/${this.path}/download/${bucket}/${encodeKey(key)}?token=${this.token ?? ''}`, {
      method,
      headers: { 'user-agent': MOZILLA, ...headers },
    })
  }

  head(bucket: string, key: string, headers: Record<string, string> = {}): Promise<Answer> {
    return this.get(bucket, key, headers, 'HEAD')
  }

  /** Names in one listing. */
  async names(bucketName: string, params: object = {}): Promise<string[]> {
    const { objects } = await this.call('ListObjects', { bucketName, prefix: '', ...params })
    return (objects ?? []).map((object: { name: string }) => object.name)
  }

  /**
   * Writes bytes to a fresh connection, and resolves with all that comes back until it closes; `end` half-closes at
   * once.
   */
  async raw(bytes: string | Buffer, end = false): Promise<string> {
    const { hostname, port } = new URL(this.url)
    return new Promise((resolve, reject) => {
      const socket = connect(Number(port), hostname, () => (end ? socket.end(bytes) : socket.write(bytes)))
      let text = ''
      socket.on('data', (chunk) => (text += chunk.toString('latin1')))
      socket.on('error', reject)
      socket.on('close', () => resolve(text))
    })
  }
}
