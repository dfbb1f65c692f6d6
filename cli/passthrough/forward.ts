import { type ClientRequest, Agent as HttpAgent, IncomingMessage, type ServerResponse } from 'node:http'
import { Agent as HttpsAgent } from 'node:https'
import type { RequestHandler } from 'http-proxy-middleware'
import { S3Error } from '../../common/errors/s3-error.js'
import { needsSandbox, withSandbox } from '../../common/sandbox.js'
import type { GatewayTls } from '../../src/gateway/gateway-call.js'
import { type Addressing, bucketOfHost, hostsOf } from '../../src/http/addressing.js'
import type { BodyLimits } from '../../src/http/body/body-source.js'
import { type BeforeBody, openIncoming } from '../../src/http/body/open-body.js'
import { headerBrands } from '../../src/http/headers.js'

interface ForwardOptions {
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
interface Forwarded {
  readonly incoming: IncomingMessage
  readonly target: string
  readonly body: Buffer
  /** Address of the client: the peer of the connection, or what a trusted proxy names. */
  readonly client: string
}

interface Forwarder {
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
          protect(response.headers)
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

/**
 * What the gateway sends is no page of this origin, whatever its type says. The length is the last header, as in
 * `http/send.ts`.
 */
function protect(headers: IncomingMessage['headers']): void {
  const { 'content-length': length, 'content-security-policy': own } = headers
  headers['x-content-type-options'] = 'nosniff'
  if (needsSandbox(headers['content-type'])) headers['content-security-policy'] = withSandbox(own)
  if (length === undefined) return
  delete headers['content-length']
  headers['content-length'] = length
}

function removeHopByHop(headers: IncomingMessage['headers']): void {
  const named = (headers.connection ?? '').split(',').map((name) => name.trim().toLowerCase())
  for (const name of [...HOP_BY_HOP, ...named]) delete headers[name]
}

/** The target of a request to one of the gateway's own endpoints. */
export interface GatewayTarget {
  /** Path and query below the mount point, as the client sent them. */
  readonly target: string
  /**
   * The decoded segments after the gateway's own one, without empty, `.` and `..` segments: every gateway resolves the
   * target to this endpoint, whether it cleans paths or not.
   */
  readonly segments: readonly string[]
}

const S3_QUERY = new RegExp(`(?:^|&)x-(?:${headerBrands.join('|')})-(?:signature|algorithm)=`, 'i')

/**
 * Returns the target of a request below `/<word>`, or undefined for an S3 request: another path, a bucket named by the
 * host, or an S3 signature. Returns 'unclear' if servers may resolve the path to different endpoints.
 */
export function gatewayTargetOf(
  incoming: IncomingMessage,
  word: string,
  addressing: Addressing,
): GatewayTarget | 'unclear' | undefined {
  const target = incoming.url ?? '/'
  const [path = '', query = ''] = splitOnce(target, '?')
  if (path !== `/${word}` && !path.startsWith(`/${word}/`)) return undefined
  if (S3_QUERY.test(query) || /^aws/i.test(incoming.headers.authorization ?? '')) return undefined
  if (bucketOfHost(hostsOf(incoming, addressing)[0] ?? '', addressing) !== undefined) return undefined
  const segments = resolve(path)
  return segments?.[0] === word ? { target, segments: segments.slice(1) } : 'unclear'
}

function splitOnce(text: string, separator: string): string[] {
  const at = text.indexOf(separator)
  return at < 0 ? [text] : [text.slice(0, at), text.slice(at + 1)]
}

/** The segments that a server which cleans paths sees; undefined if that is ambiguous. */
function resolve(path: string): string[] | undefined {
  let decoded: string
  try {
    decoded = decodeURIComponent(path)
  } catch {
    return undefined
  }
  // A server that decodes twice, or takes \ for a separator, would see another path.
  if (/[%\\\0]/.test(decoded)) return undefined
  const segments: string[] = []
  for (const segment of decoded.split('/')) {
    if (segment === '..') segments.pop()
    else if (segment !== '' && segment !== '.') segments.push(segment)
  }
  return segments
}

/** Reason why a body was not read. */
type BodyFault = 'too large' | 'too slow' | 'too many' | 'broken off' | 'read already'

const FAULTS: Readonly<Record<string, BodyFault>> = {
  RequestTimeout: 'too slow',
  IncompleteBody: 'broken off',
  SlowDown: 'too many',
  InvalidRequest: 'read already',
}

/**
 * Reads the complete body of a request.
 * @param maxBytes largest body that is read
 */
export async function readBody(
  incoming: IncomingMessage,
  maxBytes: number,
  bodyLimits: BodyLimits,
  beforeBody: BeforeBody,
): Promise<Buffer | BodyFault> {
  if (Number(incoming.headers['content-length'] ?? 0) > maxBytes) return 'too large'
  try {
    const source = openIncoming(incoming, bodyLimits, beforeBody)
    try {
      const pieces: Buffer[] = []
      let size = 0
      for (let bytes = await source.next(); bytes !== undefined; bytes = await source.next()) {
        size += bytes.length
        if (size > maxBytes) return 'too large'
        pieces.push(bytes)
      }
      return Buffer.concat(pieces, size)
    } finally {
      source.close()
    }
  } catch (error) {
    const fault = error instanceof S3Error ? FAULTS[error.code] : undefined
    if (fault === undefined) throw error
    return fault
  }
}
