import { once } from 'node:events'
import { createServer, type IncomingMessage, request, type ServerResponse } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import { buffer } from 'node:stream/consumers'
import type { Test } from 'tap'
import { lastingPort } from '../server/ports.js'
import type { GatewayAddress } from './gateway-address.js'

interface OwnAnswer {
  readonly status: number
  readonly type?: string
  readonly body: string
}

/**
 * What happens to a request on its way: it is passed on; its connection is cut before the gateway sees it, while the
 * gateway is at it, or when the gateway has answered; it is passed on and never answered; its connection is cut at once
 * and it is passed on later; it gets this answer; or it is passed on and gets this answer all the same, or an answer
 * whose body is changed, or one that is cut in the middle of its body.
 */
export type Fate =
  | 'pass'
  | 'cut-before'
  | 'cut-during'
  | 'cut-after'
  | 'silence-after'
  | 'cut-in-body'
  | OwnAnswer
  | { readonly after: OwnAnswer }
  | { readonly change: (body: Buffer) => Buffer }
  | { readonly cutAndPassOn: Promise<void> }

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
  /** Requests whose bodies are not read, and that get no answer. They are in `requests`, too. */
  leavesUnread: (request: Pick<Passed, 'method' | 'path'>) => boolean = () => false
  /** Everything that came, also what was not passed on. */
  readonly requests: Passed[] = []
  /** Requests that the gateway has answered after their sender had gone. */
  readonly late: Passed[] = []
  /** Where requests go; may change, as when the gateway was restarted. */
  target: string
  /** Asked for each request that is passed on. */
  route = (): string => this.target
  /** The path that a request is passed on with. */
  rewrite = ({ path }: Pick<Passed, 'method' | 'path'>): string => path
  /** For requests whose gateway is lost; by default their connection is cut. */
  lost: OwnAnswer | undefined

  /** Closes the port and all connections: later ones are refused. Resolves when their other ends are closed, too. */
  refuse: () => Promise<void> = async () => {}
  /** Opens the same port again. */
  accept: () => Promise<void> = async () => {}

  private constructor({ url, accessKey, secretKey }: GatewayAddress) {
    this.target = url
    this.accessKey = accessKey
    this.secretKey = secretKey
  }

  static async start(t: Test, gateway: GatewayAddress): Promise<Between> {
    const between = new Between(gateway)
    const server = createServer((incoming, outgoing) => {
      outgoing.on('error', () => {})
      between.#serve(incoming, outgoing).catch(() => {
        if (between.lost === undefined || outgoing.headersSent) outgoing.destroy()
        else answerWith(outgoing, between.lost)
      })
    })
    const sockets = new Set<Socket>()
    server.on('connection', (socket) => {
      sockets.add(socket)
      socket.on('close', () => sockets.delete(socket))
    })
    const listen = (port: number) => new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve))
    // It may be left and taken again.
    await listen(await lastingPort())
    const { port } = server.address() as AddressInfo
    between.url = `http://127.0.0.1:${port}`
    between.accept = () => listen(port)
    between.refuse = async () => {
      const closed = [...sockets].map((socket) => once(socket, 'close'))
      for (const socket of sockets) socket.end()
      await Promise.all(closed)
      await new Promise<void>((resolve) => server.close(() => resolve()))
    }
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
    if (this.leavesUnread({ method, path })) {
      this.requests.push({ method, path, headers, body: Buffer.of() })
      return
    }
    const passed = { method, path, headers, body: await buffer(incoming) }
    this.requests.push(passed)
    const fate = await this.fate(passed)
    if (typeof fate === 'object' && 'cutAndPassOn' in fate) {
      outgoing.destroy()
      await fate.cutAndPassOn
      await buffer(await this.#passOn(passed))
      this.late.push(passed)
      return
    }
    if (typeof fate === 'object' && 'status' in fate) {
      answerWith(outgoing, fate)
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
    if (outgoing.destroyed) this.late.push(passed)
    if (fate === 'silence-after') return
    if (fate === 'cut-after') outgoing.destroy()
    else if (fate === 'cut-in-body') {
      outgoing.writeHead(answer.statusCode ?? 500, answer.headers)
      outgoing.write(body.subarray(0, body.length >> 1), () => outgoing.destroy())
    } else if (typeof fate === 'object' && 'change' in fate) {
      const changed = fate.change(body)
      outgoing
        .writeHead(answer.statusCode ?? 500, { ...answer.headers, 'content-length': String(changed.length) })
        .end(changed)
    } else if (typeof fate === 'object') answerWith(outgoing, fate.after)
    else outgoing.writeHead(answer.statusCode ?? 500, answer.headers).end(body)
  }

  #passOn(passed: Passed): Promise<IncomingMessage> {
    const { method, headers, body } = passed
    return new Promise((resolve, reject) => {
      const onward = request(this.route(), { path: this.rewrite(passed), method, headers, agent: false }, resolve)
      onward.on('error', reject)
      onward.end(body)
    })
  }
}

function answerWith(outgoing: ServerResponse, { status, type, body }: OwnAnswer): void {
  outgoing.writeHead(status, { 'content-type': type ?? 'application/json' }).end(body)
}
