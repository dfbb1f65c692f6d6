import http, { type ClientRequest, type OutgoingHttpHeaders } from 'node:http'
import https from 'node:https'
import { S3Error } from '../../common/errors/s3-error.js'
import { isLostConnection, timedOut, unavailable } from '../errors.js'
import { type GatewayTls, type GatewayWatch, outcomeOfStatus, USER_AGENT, type WatchedCall } from '../gateway-call.js'
import { Connection, type Exchange } from '../transport/connection.js'
import { NodeResponse, type RestResponse } from '../transport/response.js'

/** Bytes a socket reads ahead while the client is slower than the gateway. */
const READ_AHEAD_BYTES = 1024 * 1024
const MAX_FREE_SOCKETS = 64

interface RestOptions {
  readonly url: URL
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
 * medians of 7 rounds, Node 20.20). Both send a path unchanged (`..` and `//` may be part of a key).
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
  readonly #down: ConnectionPool | https.Agent
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
    this.#down = secure ? new https.Agent({ ...settings, ...ahead }) : new ConnectionPool(url)
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

  /**
   * Connections on which a PUT of a body in memory is sent whole. Undefined over TLS, where `put` serves that, too.
   */
  get connections(): ConnectionPool | undefined {
    return this.#down instanceof ConnectionPool ? this.#down : undefined
  }

  /**
   * Starts a PUT of a whole body without waiting for anything.
   * @param reuse `recent`: only a connection that is very likely still open
   */
  putWhole(
    connections: ConnectionPool,
    path: string,
    headers: OutgoingHttpHeaders,
    body: Buffer,
    reuse: 'any' | 'recent' | 'none',
  ): Exchange {
    const watched = this.#watch.begin('upload', 'PUT')
    const sent = sendWatched(watched, connections, {
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
      down instanceof ConnectionPool
        ? { use: 'shared', ...down.usage, waiting: waitingCalls }
        : { use: 'download', ...usageOf(down) },
    ]
  }

  close(): void {
    this.#up.destroy()
    if (this.#down instanceof ConnectionPool) this.#down.close()
    else this.#down.destroy()
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
    if (!(down instanceof ConnectionPool))
      return this.#head(this.#open(method, fresh ? false : down, path, headers).end())
    return down.request(method, this.#basePath + path, headers, fresh, this.timeoutMs)
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
function sendWatched(watched: WatchedCall, connections: ConnectionPool, request: WireRequest): Exchange {
  try {
    return connections.send(request)
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

const MAX_FREE = 64
/** Fits a head and a small body in one read. */
const SCRATCH_BYTES = 64 * 1024

/**
 * Age up to which a kept connection is very likely still open, ms. Servers keep idle connections for at least five
 * seconds (Node's default).
 */
export const FRESH_MS = 2000

export interface WireRequest {
  readonly method: string
  /** Percent-encoded, with the query. */
  readonly path: string
  readonly headers: OutgoingHttpHeaders
  readonly body?: Buffer | undefined
  /**
   * Longest time for which a kept connection may have been idle, ms; 0 for a new connection, absent for as long as it
   * is kept. A gateway may close an idle connection at any time: FRESH_MS for requests that must not be sent twice.
   */
  readonly maxIdleMs?: number | undefined
}

/** Connections to one gateway over plain HTTP, for requests whose bodies are in memory. */
export class ConnectionPool {
  readonly #url: URL
  readonly #scratch = Buffer.allocUnsafeSlow(SCRATCH_BYTES)
  readonly #all = new Set<Connection>()
  /** The last used connection comes first: it is the least likely to have been closed. */
  #free: Connection[] = []

  constructor(url: URL) {
    this.#url = url
  }

  /**
   * Resolves when the head of the answer has arrived.
   * @param path percent-encoded, with the query
   * @param fresh use a new connection: a restarted gateway may have closed all kept ones
   * @param timeoutMs longest wait for the head
   * @throws Error of the connection, or S3Error for an answer that is not HTTP
   */
  async request(
    method: 'GET' | 'HEAD',
    path: string,
    headers: OutgoingHttpHeaders,
    fresh: boolean,
    timeoutMs: number,
  ): Promise<RestResponse> {
    const sent = this.send({ method, path, headers, ...(fresh && { maxIdleMs: 0 }) })
    const timer = setTimeout(() => sent.giveUp(timedOut('the first byte')), timeoutMs)
    try {
      return await sent.answered
    } finally {
      clearTimeout(timer)
    }
  }

  /** Connections at work, and kept ones. */
  get usage(): { readonly busy: number; readonly free: number } {
    return { busy: this.#all.size - this.#free.length, free: this.#free.length }
  }

  /**
   * Sends a request within this call.
   * @throws TypeError for a path or header that HTTP cannot carry; nothing was sent then
   */
  send({ method, path, headers, body, maxIdleMs = Number.POSITIVE_INFINITY }: WireRequest): Exchange {
    const head = requestHead(method, path, this.#url.host, headers, body)
    const kept = maxIdleMs === 0 ? undefined : this.#kept(maxIdleMs)
    return (kept ?? this.#open()).send(method, head, body, kept !== undefined)
  }

  close(): void {
    for (const connection of this.#all) connection.destroy()
  }

  #kept(maxIdleMs: number): Connection | undefined {
    for (;;) {
      const connection = this.#free.at(-1)
      if (!connection || connection.idleMs > maxIdleMs) return undefined
      this.#free.pop()
      if (connection.good) return connection
      connection.destroy()
    }
  }

  #open(): Connection {
    const connection = new Connection({
      host: this.#url.hostname.replace(/^\[(.*)\]$/, '$1'),
      port: Number(this.#url.port || 80),
      scratch: this.#scratch,
      onFree: (free) => {
        if (this.#free.length < MAX_FREE) this.#free.push(free)
        else free.destroy()
      },
      onClose: (closed) => {
        this.#all.delete(closed)
        this.#free = this.#free.filter((free) => free !== closed)
      },
    })
    this.#all.add(connection)
    return connection
  }
}

function requestHead(
  method: string,
  path: string,
  host: string,
  headers: OutgoingHttpHeaders,
  body: Buffer | undefined,
): string {
  // Callers encode these values; these checks are the last defence against request splitting.
  if (!/^\/[\x21-\x7e]*$/.test(path)) throw new TypeError('The path of the request is invalid.')
  // The signature of a link covers the host that its client used.
  let fields = headers.host === undefined ? `host: ${host}\r\n` : ''
  for (const name in headers) {
    const value = String(headers[name])
    if (!NAME.test(name) || !VALUE.test(value)) throw new TypeError('A header of the request is invalid.')
    fields += `${name}: ${value}\r\n`
  }
  // Said as node:http says it: some intermediaries pass on to the gateway what they get.
  const own = body === undefined ? '' : `connection: keep-alive\r\ncontent-length: ${body.length}\r\n`
  return `${method} ${path} HTTP/1.1\r\n${fields}${own}\r\n`
}

/** A token, as node:http demands. */
const NAME = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/
/** One character per byte, none of which ends the line. */
const VALUE = /^[\t\x20-\x7e\x80-\xff]*$/
