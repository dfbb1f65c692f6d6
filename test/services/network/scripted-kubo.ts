import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { buffer } from 'node:stream/consumers'
import { CarReader } from '@ipld/car'
import { decode } from '@ipld/dag-pb'
import { CID } from 'multiformats/cid'
import type { Test } from 'tap'
import { lastingPort } from '../../support/server/ports.js'

export const PEER_ID = '12D3KooWD3eckifWpRn9wQpMG9R9hX3sD158z7EqHWmweQAJU5SA'

interface Call {
  readonly command: string
  readonly query: URLSearchParams
  readonly request: IncomingMessage
}

/** Answers a command in place of the node. `proceed` does what the node would have done. */
export type Script = (call: Call, response: ServerResponse, proceed: () => Promise<void>) => Promise<void> | void

/**
 * A server that speaks the RPC of Kubo as it is documented (https://docs.ipfs.tech/reference/kubo/rpc/), and as version
 * 0.38 forms its answers: POST alone, errors as JSON with 500, or 400 for arguments, results as lines of JSON, content
 * as a stream that may end in the trailer X-Stream-Error.
 */
export class ScriptedKubo {
  readonly blocks = new Map<string, Uint8Array>()
  readonly pinned = new Set<string>()
  readonly calls: string[] = []
  /** What the last import was sent. */
  form: { readonly headers: IncomingMessage['headers']; readonly head: string; readonly car: Buffer } | undefined
  readonly scripts = new Map<string, Script>()
  /** What the node says of the address of its gateway. */
  gateway: string | string[] = '/ip4/127.0.0.1/tcp/8080'
  space = { RepoSize: 10_000, StorageMax: 10_000_000_000 }
  readonly #server = createServer((request, response) => {
    this.#serve(request, response).catch((error) => response.destroy(error))
  })

  /** Ends with the test. */
  static async start(t: Test): Promise<ScriptedKubo> {
    const kubo = new ScriptedKubo()
    await kubo.listen(await lastingPort())
    t.teardown(() => kubo.close())
    return kubo
  }

  get url(): string {
    return `http://127.0.0.1:${this.port}`
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port
  }

  async listen(port: number): Promise<void> {
    this.#server.listen(port, '127.0.0.1')
    await once(this.#server, 'listening')
  }

  async close(): Promise<void> {
    this.#server.close()
    this.#server.closeAllConnections()
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { pathname, searchParams: query } = new URL(request.url ?? '', 'http://kubo')
    const command = /^\/api\/v0\/(.+)$/.exec(pathname)?.[1]
    if (command === undefined) return void response.writeHead(404).end('404 page not found\n')
    if (request.method !== 'POST') return void response.writeHead(405).end('405 - Method Not Allowed\n')
    if (request.headers.origin !== undefined || /Mozilla/.test(request.headers['user-agent'] ?? ''))
      return void response.writeHead(403).end('403 - Forbidden\n')
    this.calls.push(command)
    const call = { command, query, request }
    const proceed = (): Promise<void> => this.#answer(call, response)
    const script = this.scripts.get(command)
    if (script === undefined) await proceed()
    else await script(call, response, proceed)
  }

  async #answer({ command, query, request }: Call, response: ServerResponse): Promise<void> {
    const arg = query.get('arg') ?? ''
    switch (command) {
      case 'id':
        return json(response, {
          ID: PEER_ID,
          PublicKey: 'CAESIA==',
          Addresses: [`/ip4/127.0.0.1/tcp/4001/p2p/${PEER_ID}`],
          AgentVersion: 'kubo/0.38.1/',
          Protocols: ['/ipfs/bitswap/1.2.0'],
        })
      case 'version':
        return json(response, { Version: '0.38.1', Commit: '', Repo: '18', System: 'amd64/linux', Golang: 'go1.25.2' })
      case 'config':
        return json(response, { Key: arg, Value: this.gateway })
      case 'repo/stat':
        return json(response, { ...this.space, NumObjects: 0, RepoPath: '', Version: '' })
      case 'pin/ls':
        if (this.pinned.has(arg)) json(response, { Keys: { [arg]: { Type: 'recursive', Name: '' } } })
        else fail(response, `path '${arg}' is not pinned`)
        return
      case 'pin/rm':
        if (this.pinned.delete(arg)) json(response, { Pins: [arg] })
        else fail(response, 'not pinned or pinned indirectly')
        return
      case 'dag/import':
        return this.#import(query, request, response)
      case 'block/get': {
        const block = this.blocks.get(arg)
        if (block === undefined) fail(response, `block was not found locally (offline): ipld: could not find ${arg}`)
        else response.writeHead(200, { 'content-type': 'application/octet-stream', 'x-stream-output': '1' }).end(block)
        return
      }
      case 'cat':
        return stream(response, this.file(arg))
      default:
        response.writeHead(404).end('404 page not found\n')
    }
  }

  async #import(query: URLSearchParams, request: IncomingMessage, response: ServerResponse): Promise<void> {
    const body = await buffer(request)
    const boundary = /^multipart\/form-data; boundary=(.+)$/.exec(request.headers['content-type'] ?? '')?.[1]
    const start = body.indexOf('\r\n\r\n') + 4
    const end = body.lastIndexOf(`\r\n--${boundary}--\r\n`)
    if (boundary === undefined || end === -1) return fail(response, "file argument 'path' is required", 400, 1)
    const car = body.subarray(start, end)
    this.form = { headers: request.headers, head: body.subarray(0, start).toString(), car }
    const reader = await CarReader.fromBytes(car)
    for await (const { cid, bytes } of reader.blocks()) this.blocks.set(cid.toString(), bytes)
    response.writeHead(200, {
      'content-type': 'application/json',
      'x-chunked-output': '1',
      trailer: 'X-Stream-Error',
    })
    for (const root of await reader.getRoots()) {
      if (query.get('pin-roots') === 'true') this.pinned.add(root.toString())
      response.write(`${JSON.stringify({ Root: { Cid: { '/': root.toString() }, PinErrorMsg: '' } })}\n`)
    }
    if (query.get('stats') === 'true')
      response.write(`${JSON.stringify({ Stats: { BlockCount: this.blocks.size, BlockBytesCount: car.length } })}\n`)
    response.end()
  }

  /** Content of a file, as `cat` has it. */
  *file(cid: string): Iterable<Uint8Array> {
    const block = this.blocks.get(cid)
    if (block === undefined) throw new Error(`block was not found locally (offline): ipld: could not find ${cid}`)
    if (CID.parse(cid).code === 0x55) yield block
    else for (const { Hash } of decode(block).Links) yield* this.file(Hash.toString())
  }
}

function json(response: ServerResponse, value: object): void {
  response.writeHead(200, { 'content-type': 'application/json' }).end(`${JSON.stringify(value)}\n`)
}

/** How Kubo says that something went wrong before anything was sent. */
export function fail(response: ServerResponse, Message: string, status = 500, Code = 0): void {
  response
    .writeHead(status, { 'content-type': 'application/json' })
    .end(`${JSON.stringify({ Message, Code, Type: 'error' })}\n`)
}

/** Content as Kubo streams it; what goes wrong on the way is told in the trailer. */
export function stream(response: ServerResponse, content: Iterable<Uint8Array>): void {
  let begun = false
  try {
    for (const chunk of content) {
      if (!begun)
        response.writeHead(200, { 'content-type': 'text/plain', 'x-stream-output': '1', trailer: 'X-Stream-Error' })
      begun = true
      response.write(chunk)
    }
    response.end()
  } catch (error) {
    if (!begun) {
      fail(response, (error as Error).message)
      return
    }
    response.addTrailers({ 'X-Stream-Error': (error as Error).message })
    response.end()
  }
}
