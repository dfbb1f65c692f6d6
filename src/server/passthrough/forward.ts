import { type ClientRequest, Agent as HttpAgent, IncomingMessage, type ServerResponse } from 'node:http'
import { Agent as HttpsAgent } from 'node:https'
import type { RequestHandler } from 'http-proxy-middleware'
import type { GatewayTls } from '../../gateway/gateway-tls.js'

export interface ForwardOptions {
  /** Address of the gateway, with an optional base path. */
  readonly url: URL
  /** For an https: address. */
  readonly tls?: GatewayTls | undefined
  /** Idle timeout of the gateway's response, ms. */
  readonly timeoutMs: number
  /** Called when the gateway's response begins, before the client receives it: changes by the request are done. */
  readonly onAnswer: (outgoing: ServerResponse, response: IncomingMessage) => void
  /** Called before `onAnswer`. Returns true if it has answered the request instead. */
  readonly replaces: (outgoing: ServerResponse, response: IncomingMessage) => boolean
  /** Called if the gateway gives no complete response. `slow` is true after a timeout. */
  readonly onFailure: (outgoing: ServerResponse, error: Error, slow: boolean) => void
}

/** A request with its complete body, and its target. */
export interface Forwarded {
  readonly incoming: IncomingMessage
  readonly target: string
  readonly body: Buffer
  /** Address of the client: the peer of the connection, or what a trusted proxy names. */
  readonly client: string
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

type Middleware = RequestHandler<IncomingMessage, ServerResponse>

/** Idle connections close before the gateway closes them: a request on a connection that is closing would be lost. */
const IDLE_CONNECTION_MS = 4_000

/**
 * Forwards requests to the gateway with http-proxy-middleware. Version 3, the last one for Node 20, mishandles bodies
 * of unknown length, joined paths, gateways that break off, and error texts; these are handled here instead.
 */
export function createForwarder(options: ForwardOptions): Forwarder {
  const { url, timeoutMs } = options
  const Agent = url.protocol === 'https:' ? HttpsAgent : HttpAgent
  const agent = new Agent({ ...options.tls, keepAlive: true, timeout: IDLE_CONNECTION_MS })
  const slow = new WeakSet<ServerResponse>()
  const bodies = new WeakMap<IncomingMessage, Buffer>()
  const fail = (outgoing: ServerResponse, error: unknown) =>
    options.onFailure(outgoing, error instanceof Error ? error : new Error(String(error)), slow.has(outgoing))
  const basePath = url.pathname.replace(/\/+$/, '')
  const createMiddleware = async (): Promise<Middleware> => {
    const { createProxyMiddleware } = await import('http-proxy-middleware')
    return createProxyMiddleware<IncomingMessage, ServerResponse>({
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
          // The first byte of a body sends the headers, so the body must come last.
          copy.push(bodies.get(copy))
          copy.push(null)
        },
        proxyRes(response, _, outgoing) {
          if (options.replaces(outgoing, response)) {
            response.on('error', () => {})
            response.resume()
            return
          }
          options.onAnswer(outgoing, response)
          removeHopByHop(response.headers)
          // The middleware would copy the header of the gateway's connection.
          response.headers.connection = outgoing.shouldKeepAlive ? 'keep-alive' : 'close'
          response.on('error', () => {})
          // A truncated body must not look complete, nor keep the client waiting.
          response.once('close', () => {
            if (!response.complete) outgoing.destroy()
          })
        },
        error(error, _, outgoing) {
          // This is a bare socket for WebSockets only.
          fail(outgoing as ServerResponse, error)
        },
      },
    })
  }
  // Loaded by the first request: few servers forward any, and each start would load its 80 modules.
  let middleware: Promise<Middleware> | undefined
  return {
    forward(request, outgoing) {
      const copy = copyOf(request)
      bodies.set(copy, request.body)
      middleware ??= createMiddleware()
      middleware
        .then((serve) => serve(copy, outgoing, (error) => fail(outgoing, error)))
        .catch((error) => fail(outgoing, error))
    },
    close: () => agent.destroy(),
  }
}

/** Copies the request for the middleware, with a known length, without hop-by-hop headers and without its body. */
function copyOf({ incoming, target, body, client }: Forwarded): IncomingMessage {
  const copy = new IncomingMessage(incoming.socket)
  copy.method = incoming.method
  copy.url = target
  copy.httpVersion = incoming.httpVersion
  copy.headers = { ...incoming.headers }
  removeHopByHop(copy.headers)
  // The gateway counts failed log-ins by address; without this header all clients would share this server's address.
  const peer = incoming.socket.remoteAddress ?? ''
  copy.headers['x-forwarded-for'] =
    client === peer ? [incoming.headers['x-forwarded-for'], peer || 'unknown'].filter(Boolean).join(', ') : client
  // This server has sent `100 Continue`.
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
