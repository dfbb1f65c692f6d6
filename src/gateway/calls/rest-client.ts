import http, { type ClientRequest, type OutgoingHttpHeaders } from 'node:http'
import https from 'node:https'
import { S3Error } from '../../../common/errors/s3-error.js'
import { isLostConnection, unavailable } from '../errors.js'
import { type GatewayTls, type GatewayWatch, outcomeOfStatus, USER_AGENT, type WatchedCall } from '../gateway-call.js'
import { ConnectionPool } from '../transport/connection-pool.js'
import type { RestResponse } from '../transport/response.js'
import { ask, FRESH_MS, type SentParts, type SentResponse, type Wire, type WireRequest } from '../transport/wire.js'

const MAX_FREE_SOCKETS = 64

interface RestOptions {
  readonly url: URL
  /** Carries what is in memory in place of own connections, and streamed uploads where it can. */
  readonly wire?: Wire | undefined
  /** For an https: address. */
  readonly tls?: GatewayTls | undefined
  /** Longest wait for the head of an answer, ms. */
  readonly timeoutMs: number
  /** Longest pause without a byte of a body that was asked for, ms. */
  readonly idleMs: number
  readonly watch: GatewayWatch
}

/**
 * The transport to the gateway. All requests whose bodies are in memory, of this class, `rpc-sender.ts` and
 * `rest-call.ts`, use own connections (`transport/`): over plain HTTP, node:http needs 3.8 times their CPU time per GiB
 * and 3.7 times per small object, undici 3.5 and 1.6 times (`bench --only transport`, medians of 7 rounds, Node 20.20);
 * over TLS, node:http needs 1.4 and 2.2 times, undici 1.04 and 1.2 times. Streamed uploads use node:http, which costs
 * half of what undici costs per byte. Both send a path unchanged (`..` and `//` may be part of a key). To a gateway in
 * this process, a port takes the place of all connections: a GET of 1 KiB costs half of the CPU time then, and a
 * streamed upload five sixths.
 *
 * Nothing else reaches the gateway but, for paths that are passed through as they are, `cli/passthrough/forward.ts`.
 */
export class RestClient {
  readonly timeoutMs: number
  readonly idleMs: number
  readonly #url: URL
  readonly #basePath: string
  readonly #tls: GatewayTls | undefined
  readonly #request: typeof http.request
  readonly #watch: GatewayWatch
  readonly #up: http.Agent
  /** Carries all requests but streamed uploads, and these, too, where it can. */
  readonly wire: Wire

  constructor(options: RestOptions) {
    const { url } = options
    this.#url = url
    this.#basePath = url.pathname.replace(/\/+$/, '')
    this.#tls = options.tls
    this.#watch = options.watch
    this.timeoutMs = options.timeoutMs
    this.idleMs = options.idleMs
    const secure = url.protocol === 'https:'
    this.#request = secure ? https.request : http.request
    const settings = { keepAlive: true, maxFreeSockets: MAX_FREE_SOCKETS, noDelay: true }
    this.#up = secure ? new https.Agent(settings) : new http.Agent(settings)
    this.wire = options.wire ?? new ConnectionPool(url, options.tls, options.timeoutMs)
  }

  /**
   * Starts a PUT by node:http without waiting for anything.
   * @param fresh use a new connection
   */
  put(path: string, headers: OutgoingHttpHeaders, fresh: boolean): ClientRequest {
    const watched = this.#watch.begin('upload', 'PUT')
    const request = this.#openWatched(watched, fresh ? false : this.#up, path, { ...headers, ...watched.headers })
    request.once('response', ({ statusCode = 0 }) => watched.end(outcomeOfStatus(statusCode), statusCode))
    request.once('close', () => watched.end('failed'))
    return request
  }

  /**
   * Starts a PUT whose body follows in parts, without waiting for anything. Undefined where node:http has to carry it.
   */
  putInParts(path: string, headers: OutgoingHttpHeaders): SentParts | undefined {
    const { begin } = this.wire
    if (!begin) return undefined
    const watched = this.#watch.begin('upload', 'PUT')
    const request = { method: 'PUT', path: this.#basePath + path, headers: withOwn(headers, watched.headers) }
    try {
      const sent = begin.call(this.wire, request)
      endWith(watched, sent.response)
      return sent
    } catch (error) {
      watched.end('failed')
      throw unsendable(error)
    }
  }

  /**
   * Starts a PUT of a whole body without waiting for anything.
   * @param reuse `recent`: only a connection that is very likely still open
   */
  putWhole(path: string, headers: OutgoingHttpHeaders, body: Buffer, reuse: 'any' | 'recent' | 'none'): SentResponse {
    const watched = this.#watch.begin('upload', 'PUT')
    const sent = sendWatched(watched, this.wire, {
      method: 'PUT',
      path: this.#basePath + path,
      headers: withOwn(headers, watched.headers),
      body,
      maxIdleMs: reuse === 'any' ? undefined : reuse === 'recent' ? FRESH_MS : 0,
    })
    endWith(watched, sent)
    return sent
  }

  /**
   * Sends a GET or HEAD and resolves with the head of the answer. Repeats it once when the connection is lost before
   * that. Throws S3Error.
   */
  async get(method: 'GET' | 'HEAD', path: string, headers: OutgoingHttpHeaders = {}): Promise<RestResponse> {
    for (let isRepeated = false; ; isRepeated = true) {
      const watched = this.#watch.begin('download', method)
      try {
        const request = { method, path: this.#basePath + path, headers: withOwn(headers, watched.headers) }
        const response = await ask(this.wire, isRepeated ? { ...request, maxIdleMs: 0 } : request, this.timeoutMs)
        watched.end(outcomeOfStatus(response.status), response.status)
        return response
      } catch (error) {
        watched.end('failed')
        if (isRepeated || !isLostConnection(error)) throw unavailable(error)
      }
    }
  }

  /**
   * Connections of streamed uploads, and those that all other requests share.
   * @param waitingCalls calls of JSON-RPC that wait for one of these
   */
  usage(waitingCalls: number) {
    return [
      { use: 'upload', ...usageOf(this.#up) },
      { use: 'shared', ...this.wire.usage, waiting: waitingCalls },
    ]
  }

  close(): void {
    this.#up.destroy()
    this.wire.close()
  }

  /** Starts a PUT, and ends the watched call if that fails. */
  #openWatched(watched: WatchedCall, agent: http.Agent | false, path: string, headers: OutgoingHttpHeaders) {
    try {
      return this.#request({
        ...this.#tls,
        protocol: this.#url.protocol,
        hostname: this.#url.hostname.replace(/^\[(.*)\]$/, '$1'),
        port: this.#url.port,
        agent,
        method: 'PUT',
        path: this.#basePath + path,
        headers: withOwn(headers),
      })
    } catch (error) {
      watched.end('failed')
      throw unsendable(error)
    }
  }
}

/**
 * Ends the watched call if it could not be sent: HTTP cannot carry one of its headers. Without a closure, which would
 * share its context with those that wait for the answer, and keep the body for them.
 */
function sendWatched(watched: WatchedCall, wire: Wire, request: WireRequest): SentResponse {
  try {
    return wire.send(request)
  } catch (error) {
    watched.end('failed')
    throw unsendable(error)
  }
}

function endWith(watched: WatchedCall, { answered }: SentResponse): void {
  answered.then(
    ({ status }) => watched.end(outcomeOfStatus(status), status),
    () => watched.end('failed'),
  )
}

/** Control characters, and header names that are not tokens. */
function unsendable(cause: unknown): S3Error {
  return new S3Error('InvalidArgument', { message: 'A header or metadata entry cannot be sent over HTTP.', cause })
}

/** The headers to send. Member by member: a spread of several objects makes a slow hash table. */
function withOwn(...given: readonly OutgoingHttpHeaders[]): OutgoingHttpHeaders {
  const all: OutgoingHttpHeaders = { 'user-agent': USER_AGENT }
  for (const headers of given) for (const name in headers) all[name] = headers[name]
  return all
}

function usageOf({ sockets, freeSockets, requests }: http.Agent) {
  const count = (lists: NodeJS.ReadOnlyDict<readonly unknown[]>) =>
    Object.values(lists).reduce((sum, list) => sum + (list?.length ?? 0), 0)
  return { busy: count(sockets), free: count(freeSockets), waiting: count(requests) }
}
