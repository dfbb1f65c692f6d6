import { type ClientRequest, Agent as HttpAgent, IncomingMessage, type ServerResponse } from 'node:http'
import { Agent as HttpsAgent } from 'node:https'
import { createProxyMiddleware } from 'http-proxy-middleware'

export interface ForwardOptions {
  /** The gateway's address; may have a base path. */
  readonly url: URL
  /** So long may the gateway send nothing, ms. */
  readonly timeoutMs: number
  /** The gateway has begun to answer, or never will: whatever the request does is done. Called before the client hears of it. */
  readonly onAnswer: (outgoing: ServerResponse, response: IncomingMessage) => void
  /** There is no answer of the gateway to give. `slow`: it did not come in time. */
  readonly onFailure: (outgoing: ServerResponse, error: Error, slow: boolean) => void
}

/** A request whose body has arrived, and where it goes. */
export interface Forwarded {
  readonly incoming: IncomingMessage
  readonly target: string
  readonly body: Buffer
}

export interface Forwarder {
  forward(request: Forwarded, outgoing: ServerResponse): void
  close(): void
}

/** Headers of one connection: https://www.rfc-editor.org/rfc/rfc9110#section-7.6.1 */
const HOP_BY_HOP = [
  'connection',
  'keep-alive',
  'proxy-authenticate',
  'proxy-authorization',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
]

/** Connections that nobody uses are given up before gateways do so: a request on one that just closes would be lost. */
const IDLE_CONNECTION_MS = 4_000

/**
 * Passes requests on to the gateway with http-proxy-middleware. Its version 3, the last for Node 20, is not given what it gets wrong: bodies of unknown length, paths
 * to join, the failures of a gateway that breaks off, and the text of errors.
 */
export function createForwarder(options: ForwardOptions): Forwarder {
  const { url, timeoutMs } = options
  const Agent = url.protocol === 'https:' ? HttpsAgent : HttpAgent
  const agent = new Agent({ keepAlive: true, timeout: IDLE_CONNECTION_MS })
  const slow = new WeakSet<ServerResponse>()
  const bodies = new WeakMap<IncomingMessage, Buffer>()
  const fail = (outgoing: ServerResponse, error: unknown) =>
    options.onFailure(outgoing, error instanceof Error ? error : new Error(String(error)), slow.has(outgoing))
  const basePath = url.pathname.replace(/\/+$/, '')
  const middleware = createProxyMiddleware<IncomingMessage, ServerResponse>({
    target: url.origin,
    changeOrigin: true,
    agent,
    proxyTimeout: timeoutMs,
    on: {
      proxyReq(request: ClientRequest, copy, outgoing) {
        request.path = basePath + copy.url
        request.once('timeout', () => slow.add(outgoing))
        const leave = () => {
          if (!outgoing.writableFinished) request.destroy()
        }
        if (outgoing.destroyed) leave()
        else outgoing.once('close', leave)
        // Not before: the first byte of a body takes the head with it.
        copy.push(bodies.get(copy))
        copy.push(null)
      },
      proxyRes(response, _, outgoing) {
        options.onAnswer(outgoing, response)
        removeHopByHop(response.headers)
        // The middleware would say what the gateway's connection does.
        response.headers.connection = outgoing.shouldKeepAlive ? 'keep-alive' : 'close'
        response.on('error', () => {})
        // A body that the gateway did not end must not look complete, nor keep the client waiting.
        response.once('close', () => {
          if (!response.complete) outgoing.destroy()
        })
      },
      error(error, _, outgoing) {
        // WebSockets alone have a bare socket there.
        fail(outgoing as ServerResponse, error)
      },
    },
  })
  return {
    forward(request, outgoing) {
      const copy = copyOf(request)
      bodies.set(copy, request.body)
      void middleware(copy, outgoing, (error) => fail(outgoing, error))
    },
    close: () => agent.destroy(),
  }
}

/** The request as the middleware sees it: of a known length, and without what belongs to the client's connection. Its body is still to be given. */
function copyOf({ incoming, target, body }: Forwarded): IncomingMessage {
  const copy = new IncomingMessage(incoming.socket)
  copy.method = incoming.method
  copy.url = target
  copy.httpVersion = incoming.httpVersion
  copy.headers = { ...incoming.headers }
  removeHopByHop(copy.headers)
  // Answered here already.
  delete copy.headers.expect
  delete copy.headers['content-length']
  if (incoming.method === 'POST') copy.headers['content-length'] = String(body.length)
  copy.complete = true
  return copy
}

function removeHopByHop(headers: IncomingMessage['headers']): void {
  const named = (headers.connection ?? '').split(',').map((name) => name.trim().toLowerCase())
  for (const name of [...HOP_BY_HOP, ...named]) delete headers[name]
}
