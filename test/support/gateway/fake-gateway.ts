import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { json } from 'node:stream/consumers'
import type { Test } from 'tap'
import { md5 } from '../content/content.js'
import { listen } from '../server/listen.js'
import type { GatewayAddress } from './gateway-address.js'

export type Script = (request: IncomingMessage, response: ServerResponse, key: string) => void

/**
 * A gateway in the wire form of public deployments that a test can make misbehave. It holds one bucket, `fakes`, whose
 * objects the test puts in by hand; it does nothing else.
 */
export class FakeGateway implements GatewayAddress {
  readonly accessKey = 'fakekey'
  readonly secretKey = 'fakesecret'
  readonly objects = new Map<string, Buffer>()
  /** Answers downloads in place of the object's bytes. */
  onDownload: Script | undefined
  /** Answers uploads; by default they are taken. */
  onUpload: Script | undefined
  /** Answers JSON-RPC calls of these methods. */
  readonly onCall = new Map<string, (response: ServerResponse) => void>()
  url = ''
  uploads = 0
  readonly #modified = '2026-01-02T03:04:05.678901234Z'

  static async start(t: Test): Promise<FakeGateway> {
    const gateway = new FakeGateway()
    const server = createServer((request, response) => void gateway.#serve(request, response))
    gateway.url = await listen(server, t)
    return gateway
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { pathname } = new URL(request.url ?? '/', this.url)
    const [, verb = ''] = /^\/gateway\/(webrpc|upload|download)/.exec(pathname) ?? []
    if (verb === 'webrpc') return this.#call(request, response)
    const key = decodeURIComponent(pathname.replace(/^\/gateway\/\w+\/fakes\//, ''))
    if (verb === 'download') return this.#download(request, response, key)
    if (verb === 'upload') return this.#upload(request, response, key)
    sendPage(response)
  }

  async #call(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { id, method, params } = (await json(request)) as {
      id: unknown
      method: string
      params?: { prefix?: string }
    }
    const script = this.onCall.get(method)
    if (script) return script(response)
    const result = { uiVersion: '2026-01-01T00:00:00Z', ...this.#result(method, params?.prefix ?? '') }
    response.setHeader('content-type', 'application/json; charset=utf-8')
    response.end(JSON.stringify({ jsonrpc: '2.0', result, id }))
  }

  #result(method: string, prefix: string): object {
    switch (method) {
      case 'web.Login':
      case 'web.CreateURLToken':
        return { token: 'a-token' }
      case 'web.ListBuckets':
        return { buckets: [{ name: 'fakes', creationDate: this.#modified }] }
      case 'web.ListObjects':
        return { objects: this.#level(prefix), writable: true }
      default:
        return {}
    }
  }

  #level(prefix: string): object[] | null {
    const level = [...this.objects].flatMap(([name, data]) => {
      const rest = name.slice(prefix.length)
      if (!name.startsWith(prefix) || rest.includes('/')) return []
      return [{ name, lastModified: this.#modified, size: data.length, contentType: 'application/octet-stream' }]
    })
    return level.length === 0 ? null : level
  }

  #download(request: IncomingMessage, response: ServerResponse, key: string): void {
    const data = this.objects.get(key)
    if (!data) {
      response.writeHead(404, { 'content-type': 'text/plain' }).end('The specified key does not exist.')
      return
    }
    if (this.onDownload) {
      this.onDownload(request, response, key)
      return
    }
    response.writeHead(200, this.headersFor(data)).end(data)
  }

  /** As public deployments send them: Range is announced and ignored. */
  headersFor(data: Buffer): Record<string, string | number> {
    return {
      'content-type': 'application/octet-stream',
      'content-length': data.length,
      'last-modified': new Date(this.#modified).toUTCString(),
      'accept-ranges': 'bytes',
      etag: `"${md5(data)}-1"`,
      'content-disposition': 'attachment; filename="x"',
    }
  }

  #upload(request: IncomingMessage, response: ServerResponse, key: string): void {
    this.uploads++
    if (this.onUpload) {
      this.onUpload(request, response, key)
      return
    }
    const chunks: Buffer[] = []
    request.on('data', (chunk: Buffer) => chunks.push(chunk))
    request.on('end', () => {
      this.objects.set(key, Buffer.concat(chunks))
      response.end()
    })
  }
}

/** What a wrong address gets: the console's page, with 200. */
export function sendPage(response: ServerResponse): void {
  response.writeHead(200, { 'content-type': 'text/html' }).end('<!doctype html><title>Console</title>')
}
