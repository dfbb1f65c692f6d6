import { createServer, type IncomingMessage, request, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { buffer } from 'node:stream/consumers'
import type { Test } from 'tap'
import type { GatewayAddress } from './dealgate.js'

/** What happens to a request on its way: it is passed on; its connection is cut before the gateway sees it, while the gateway is at it, or when the gateway has answered; or it gets this answer. */
export type Fate =
  | 'pass'
  | 'cut-before'
  | 'cut-during'
  | 'cut-after'
  | { readonly status: number; readonly type?: string; readonly body: string }

export interface Passed {
  readonly method: string
  readonly path: string
  readonly headers: IncomingMessage['headers']
  readonly body: Buffer
}

/** Stands between dealgate and a gateway, where a test decides what gets lost. */
export class Between implements GatewayAddress {
  readonly accessKey: string
  readonly secretKey: string
  url = ''
  /** Asked for each request; by default all pass. */
  fate: (request: Passed) => Fate | Promise<Fate> = () => 'pass'
  /** Everything that came, also what was not passed on. */
  readonly requests: Passed[] = []
  /** Where requests go; may change, as when the gateway was restarted. */
  target: string

  private constructor({ url, accessKey, secretKey }: GatewayAddress) {
    this.target = url
    this.accessKey = accessKey
    this.secretKey = secretKey
  }

  static async start(t: Test, gateway: GatewayAddress): Promise<Between> {
    const between = new Between(gateway)
    const server = createServer((incoming, outgoing) => {
      outgoing.on('error', () => {})
      between.#serve(incoming, outgoing).catch(() => outgoing.destroy())
    })
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    between.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
    t.teardown(() => {
      server.closeAllConnections()
      server.close()
    })
    return between
  }

  /** Requests of this method to paths that begin so. */
  count(method: string, path: string): number {
    return this.requests.filter((request) => request.method === method && request.path.startsWith(path)).length
  }

  async #serve(incoming: IncomingMessage, outgoing: ServerResponse): Promise<void> {
    const { method = '', url: path = '', headers } = incoming
    const passed = { method, path, headers, body: await buffer(incoming) }
    this.requests.push(passed)
    const fate = await this.fate(passed)
    if (typeof fate === 'object') {
      outgoing.writeHead(fate.status, { 'content-type': fate.type ?? 'application/json' }).end(fate.body)
      return
    }
    if (fate === 'cut-before') {
      outgoing.destroy()
      return
    }
    const answered = this.#passOn(passed)
    if (fate === 'cut-during') outgoing.destroy()
    const answer = await answered
    const body = await buffer(answer)
    if (fate === 'cut-after') outgoing.destroy()
    else outgoing.writeHead(answer.statusCode ?? 500, answer.headers).end(body)
  }

  #passOn({ method, path, headers, body }: Passed): Promise<IncomingMessage> {
    return new Promise((resolve, reject) => {
      const onward = request(new URL(path, this.target), { method, headers, agent: false }, resolve)
      onward.on('error', reject)
      onward.end(body)
    })
  }
}
