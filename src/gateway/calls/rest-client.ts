import http, { type ClientRequest, type OutgoingHttpHeaders } from 'node:http'
import https from 'node:https'
import { S3Error } from '../../common/errors/s3-error.js'
import { isLostConnection, timedOut, unavailable } from '../errors.js'
import { type GatewayTls, type GatewayWatch, outcomeOfStatus, USER_AGENT, type WatchedCall } from '../gateway-call.js'
import { ConnectionPool } from '../transport/connection-pool.js'
import { NodeResponse, type RestResponse } from '../transport/response.js'
import { ask, FRESH_MS, type Sent, type Wire, type WireRequest } from '../transport/wire.js'

/** Bytes a socket reads ahead while the client is slower than the gateway. */
const READ_AHEAD_BYTES = 1024 * 1024
const MAX_FREE_SOCKETS = 64

interface RestOptions {
  readonly url: URL
  /** Carries what is in memory in place of connections over plain HTTP. */
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
 * The transport for the bytes of objects. Long uploads and TLS use node:http, which costs half of what undici costs per
 * byte on Node 20. Downloads and small uploads over plain HTTP use own connections (`transport/`): node:http needs 3.8
 * times their CPU time per GiB and 3.7 times per small object, undici 3.5 and 1.6 times (`bench --only transport`,
 * medians of 7 rounds, Node 20.20). Both send a path unchanged (`..` and `//` may be part of a key). To a gateway in
 * this process, a port takes the place of these connections: a GET of 1 KiB costs half of the CPU time then.
 *
 * Nothing else reaches the gateway but `rpc-sender.ts` (JSON-RPC), `rest-call.ts` (its deal endpoints and key pairs, a
 * connection for each) and, for paths that are passed through as they are, `server/passthrough-forward.ts`.
 */
export class RestClient {
  readonly timeoutMs: number
  readonly idleMs: number
  readonly #url: URL
  readonly #basePath: string
  readonly #tls: GatewayTls | undefined
  readonly #request: typeof http.request
  readonly #watch: GatewayWatch
  // Two agents, so that a copy (a download that waits for its upload) could not deadlock if sockets were bounded.
  readonly #up: http.Agent
  readonly #down: Wire | https.Agent
  #uploaded = Number.NEGATIVE_INFINITY

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
    // Agents pass unknown options to the socket, and a response reads ahead as far as its socket.
    const ahead: object = { highWaterMark: READ_AHEAD_BYTES }
    this.#down = secure ? new https.Agent({ ...settings, ...ahead }) : (options.wire ?? new ConnectionPool(url))
  }

  /**
   * Starts a PUT without waiting for anything.
   * @param fresh use a new connection
   */
  put(path: string, headers: OutgoingHttpHeaders, fresh: boolean): ClientRequest {
    this.#uploaded = performance.now()
    const watched = this.#watch.begin('upload', 'PUT')
    const request = this.#openWatched(watched, fresh ? false : this.#up, path, { ...headers, ...watched.headers })
    request.once('response', ({ statusCode = 0 }) => watched.end(outcomeOfStatus(statusCode), statusCode))
    request.once('close', () => watched.end('failed'))
    return request
  }

  /** What carries a PUT of a body in memory. Undefined over TLS, where `put` serves that, too. */
  get wire(): Wire | undefined {
    return this.#down instanceof https.Agent ? undefined : this.#down
  }

  /**
   * Starts a PUT of a whole body without waiting for anything.
   * @param reuse `recent`: only a connection that is very likely still open
   */
  putWhole(
    wire: Wire,
    path: string,
    headers: OutgoingHttpHeaders,
    body: Buffer,
    reuse: 'any' | 'recent' | 'none',
  ): Sent {
    const watched = this.#watch.begin('upload', 'PUT')
    const sent = sendWatched(watched, wire, {
      method: 'PUT',
      path: this.#basePath + path,
      headers: withOwn(headers, watched.headers),
      body,
      maxIdleMs: reuse === 'any' ? undefined : reuse === 'recent' ? FRESH_MS : 0,
    })
    sent.answered.then(
      ({ status }) => watched.end(outcomeOfStatus(status), status),
      () => watched.end('failed'),
    )
    return sent
  }

  /**
   * True when a connection kept since the last upload is very likely still open: the agent reuses the last used
   * connection first.
   */
  get uploadedLately(): boolean {
    return performance.now() - this.#uploaded < FRESH_MS
  }

  /**
   * Sends a GET or HEAD and resolves with the head of the answer. Repeats it once when the connection is lost before
   * that. Throws S3Error.
   */
  async get(method: 'GET' | 'HEAD', path: string, headers: OutgoingHttpHeaders = {}): Promise<RestResponse> {
    try {
      return await this.#get(method, path, headers, false)
    } catch (error) {
      if (!isLostConnection(error)) throw unavailable(error)
    }
    try {
      return await this.#get(method, path, headers, true)
    } catch (error) {
      throw unavailable(error)
    }
  }

  /**
   * Connections of uploads and downloads. Over plain HTTP, downloads share theirs with small uploads and JSON-RPC.
   * @param waitingCalls calls of JSON-RPC that wait for such a connection
   */
  usage(waitingCalls: number) {
    const down = this.#down
    return [
      { use: 'upload', ...usageOf(this.#up) },
      down instanceof https.Agent
        ? { use: 'download', ...usageOf(down) }
        : { use: 'shared', ...down.usage, waiting: waitingCalls },
    ]
  }

  close(): void {
    this.#up.destroy()
    if (this.#down instanceof https.Agent) this.#down.destroy()
    else this.#down.close()
  }

  #open(method: string, agent: http.Agent | false, path: string, headers: OutgoingHttpHeaders): ClientRequest {
    return this.#request({
      ...this.#tls,
      protocol: this.#url.protocol,
      hostname: this.#url.hostname.replace(/^\[(.*)\]$/, '$1'),
      port: this.#url.port,
      agent,
      method,
      path: this.#basePath + path,
      headers: withOwn(headers),
    })
  }

  async #get(
    method: 'GET' | 'HEAD',
    path: string,
    headers: OutgoingHttpHeaders,
    fresh: boolean,
  ): Promise<RestResponse> {
    const watched = this.#watch.begin('download', method)
    try {
      const response = await this.#ask(method, path, withOwn(headers, watched.headers), fresh)
      watched.end(outcomeOfStatus(response.status), response.status)
      return response
    } catch (error) {
      watched.end('failed')
      throw error
    }
  }

  /** Starts a PUT, and ends the watched call if that fails. */
  #openWatched(watched: WatchedCall, agent: http.Agent | false, path: string, headers: OutgoingHttpHeaders) {
    try {
      return this.#open('PUT', agent, path, headers)
    } catch (error) {
      watched.end('failed')
      throw unsendable(error)
    }
  }

  #ask(method: 'GET' | 'HEAD', path: string, headers: OutgoingHttpHeaders, fresh: boolean): Promise<RestResponse> {
    const down = this.#down
    if (down instanceof https.Agent) return this.#head(this.#open(method, fresh ? false : down, path, headers).end())
    const request = { method, path: this.#basePath + path, headers, ...(fresh && { maxIdleMs: 0 }) }
    return ask(down, request, this.timeoutMs)
  }

  #head(request: ClientRequest): Promise<RestResponse> {
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => request.destroy(timedOut('the first byte')), this.timeoutMs)
      request.once('response', (message) => {
        clearTimeout(timer)
        resolve(new NodeResponse(message))
      })
      request.on('error', (error) => {
        clearTimeout(timer)
        reject(error)
      })
    })
  }
}

/**
 * Ends the watched call if it could not be sent: HTTP cannot carry one of its headers. Without a closure, which would
 * share its context with those that wait for the answer, and keep the body for them.
 */
function sendWatched(watched: WatchedCall, wire: Wire, request: WireRequest): Sent {
  try {
    return wire.send(request)
  } catch (error) {
    watched.end('failed')
    throw unsendable(error)
  }
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
