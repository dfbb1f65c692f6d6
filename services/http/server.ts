import cluster from 'node:cluster'
import { once } from 'node:events'
import { createServer, type IncomingMessage, type Server, type ServerResponse, STATUS_CODES } from 'node:http'
import { type AddressInfo, createServer as createListener } from 'node:net'
import type { Duplex } from 'node:stream'
import { answerForm, hasUnknownCoding, type ParseError } from '../../common/broken-request.js'
import { isLoopback, networkOf, plainAddress } from '../../common/cidr.js'
import { ConnectionBound } from '../../common/connection-bound.js'
import { settleExpectation } from '../../common/expectation.js'
import type { ServicesLog } from '../log.js'
import { BodyGate, type HttpExchange, type ServiceRequest, type ServiceResponse } from './body.js'
import { HttpError, ReceiveError } from './errors.js'
import { answerHealth, isHealthCall } from './health.js'
import { reply } from './reply.js'
import { parseTarget } from './routes.js'

export interface HttpServerOptions {
  readonly maxHeaderBytes: number
  /** Most open connections. */
  readonly maxConnections: number
  readonly log: ServicesLog
  /** The body of an answer to what is not HTTP. */
  readonly describe: (error: HttpError) => { readonly type: string; readonly text: string }
}

/**
 * Answers a request; never rejects.
 * @param waiting the client sent `Expect: 100-continue`
 */
type Serve = (request: IncomingMessage, response: ServerResponse, waiting: boolean) => unknown

/** The parts of a service that has many small requests, and no framework. */
export interface HandlerOptions extends Pick<HttpServerOptions, 'describe' | 'log'> {
  readonly handle: (exchange: HttpExchange) => Promise<void> | void
  /** Answers a request whose handling threw. */
  readonly fail: (exchange: HttpExchange, error: unknown) => void
  /** Reads something of the database, for `GET /-/ready`; resolves once that succeeds. */
  readonly ready: () => Promise<unknown>
}

/**
 * What answers each request of a service.
 * @returns never rejects; `waiting`: the client sent `Expect: 100-continue`
 */
export function serving({ handle, fail, describe, ready, log }: HandlerOptions) {
  return async (request: ServiceRequest, response: ServiceResponse, waiting: boolean): Promise<void> => {
    // A client that disconnects must not stop the server.
    response.on('error', () => {})
    const body = new BodyGate(response, waiting)
    const exchange: HttpExchange = { request, response, body, target: parseTarget(request.url ?? '/') }
    try {
      // The parser accepts the coding.
      if (hasUnknownCoding(request.headers)) answer(exchange, unknownCoding(), describe)
      else if (isHealthCall(exchange)) await answerHealth(exchange, ready, log)
      else await handle(exchange)
    } catch (error) {
      fail(exchange, error)
    }
  }
}

/** Creates the HTTP server of a service; it does not listen yet. */
export function createHttpServer(options: HttpServerOptions, serve: Serve): Server {
  const server = createServer({
    maxHeaderSize: options.maxHeaderBytes,
    headersTimeout: 60_000,
    // Bodies may take hours; the reader aborts one that stalls.
    requestTimeout: 0,
    keepAliveTimeout: 75_000,
  })
  const latest = new WeakMap<Duplex, ServerResponse>()
  const serveHttp = (waiting: boolean) => (request: IncomingMessage, response: ServerResponse) => {
    latest.set(request.socket, response)
    return serve(request, response, waiting)
  }
  server.on('request', serveHttp(false))
  server.on('checkContinue', (request, response) => {
    const waits = !settleExpectation(request, response)
    return serveHttp(waits)(request, response)
  })
  // `listen` reports the errors of a server that does not listen.
  server.on('error', (err) => {
    if (server.listening) options.log.warn({ err }, 'A connection could not be accepted.')
  })
  server.on('clientError', (error, socket) => answerBrokenRequest(error, socket, latest.get(socket), options.describe))
  // The connections of the proxy, and of a reverse proxy on this machine, are those of many clients.
  const bounds = { total: options.maxConnections, isShared: isLoopback }
  new ConnectionBound(server, bounds, (because) =>
    options.log.warn({ because, maxConnections: bounds.total }, 'Connections without a running request were closed.'),
  )
  return server
}

function answer(exchange: HttpExchange, error: HttpError, describe: HttpServerOptions['describe']): void {
  const { type, text } = describe(error)
  reply(exchange, error.status, ['Content-Type', type], Buffer.from(text))
}

/** For a request whose transfer coding the parser accepts, and no service knows. */
export function unknownCoding(): HttpError {
  return new HttpError(501, 'The only transfer coding that is implemented is chunked.')
}

/** @param code of the parser, such as HPE_HEADER_OVERFLOW */
function brokenRequest(code: string | undefined): HttpError {
  switch (code) {
    case 'HPE_HEADER_OVERFLOW':
      return new HttpError(431, 'The request headers are too large.')
    case 'HPE_INVALID_EOF_STATE':
      return new ReceiveError('IncompleteBody')
    case 'ERR_HTTP_REQUEST_TIMEOUT':
      return new HttpError(408, 'The request headers did not arrive in time.')
    default:
      return new HttpError(400, 'The request is not HTTP/1.1.')
  }
}

/**
 * Answers a request that is not HTTP, or that ends before its Content-Length.
 * @param latest the last response on this connection: while it is being sent, no other may be sent
 */
function answerBrokenRequest(
  error: ParseError,
  socket: Duplex,
  latest: ServerResponse | undefined,
  describe: HttpServerOptions['describe'],
): void {
  const answering = latest?.headersSent === true && !latest.writableFinished
  if (error.code === 'ECONNRESET' || !socket.writable || answering) {
    socket.destroy()
    return
  }
  // The request itself is complete: its response is still sent, as the last one on this connection.
  if (latest?.req.complete && !latest.headersSent) {
    latest.shouldKeepAlive = false
    return
  }
  const refusal = brokenRequest(error.code)
  const { type, text } = describe(refusal)
  const current = latest && !latest.req.complete ? latest.req : undefined
  const form = answerForm(error, socket, current)
  const length = form === 'empty' ? 0 : Buffer.byteLength(text)
  const status = `${refusal.status} ${STATUS_CODES[refusal.status]}`
  const head = `HTTP/1.1 ${status}\r\nConnection: close\r\nContent-Type: ${type}\r\nContent-Length: ${length}\r\n\r\n`
  socket.end(form === 'document' ? head + text : head)
}

/** A server that listens. */
export interface Listening {
  /** `http://host:port` */
  readonly url: string
  readonly port: number
  /** URL by which this process reaches the server, never another one that shares the port. */
  readonly ownUrl: string
  /** Lets running requests finish for at most `stopMs`. */
  close(stopMs: number): Promise<void>
}

/**
 * Starts listening. Processes of `node:cluster` share the port: in one of them, the server has another port of its own.
 * Rejects with an error that has the code EADDRINUSE and names the port when another program uses it.
 */
export async function listen(server: Server, host: string, port: number): Promise<Listening> {
  await listenAt(server, host, port)
  const own = cluster.isWorker ? await listenAlone(server).catch((error) => refused(server, error)) : undefined
  const actual = portOf(server)
  return {
    url: urlOf(host, actual),
    port: actual,
    ownUrl: own?.url ?? localUrlOf(host, actual),
    close: async (stopMs) => {
      await Promise.all([close(server, stopMs), own?.close()])
    },
  }
}

/** No request may come to a service that has not started. */
async function refused(server: Server, error: unknown): Promise<never> {
  await close(server, 0)
  throw error
}

function listenAt(server: Server, host: string, port: number): Promise<void> {
  return new Promise((resolve, reject) => {
    const refuse = (error: NodeJS.ErrnoException): void => {
      const inUse = error.code === 'EADDRINUSE'
      const text = `Port ${port} of ${host} is in use by another program. Stop that one or choose another port.`
      reject(inUse ? Object.assign(new Error(text, { cause: error }), { code: error.code }) : error)
    }
    server.once('error', refuse)
    server.listen(port, host, () => {
      server.off('error', refuse)
      resolve()
    })
  })
}

/** Has the server take the connections of a port of this machine that no other process shares. */
async function listenAlone(server: Server): Promise<{ readonly url: string; close(): Promise<void> }> {
  // Connections are accepted as a server of HTTP accepts them.
  const accepting = { allowHalfOpen: true, noDelay: true }
  const listener = createListener(accepting, (socket) => server.emit('connection', socket))
  const host = '127.0.0.1'
  listener.listen({ host, port: 0, exclusive: true })
  await once(listener, 'listening')
  listener.on('error', (error) => server.emit('error', error))
  return {
    url: urlOf(host, portOf(listener)),
    // Its connections are those of the server, which closes them.
    close: () => new Promise((resolve) => listener.close(() => resolve())),
  }
}

function portOf(server: Pick<Server, 'address'>): number {
  return (server.address() as AddressInfo).port
}

export function urlOf(host: string, port: number): string {
  return `http://${host.includes(':') ? `[${host}]` : host}:${port}`
}

/** URL by which programs on this machine reach a server, also one that listens on all addresses. */
export function localUrlOf(host: string, port: number): string {
  return urlOf(host === '0.0.0.0' ? '127.0.0.1' : host === '::' ? '::1' : host, port)
}

/** Interval at which idle connections are closed while a server stops, ms. */
const IDLE_CHECK_MS = 50

async function close(server: Server, stopMs: number): Promise<void> {
  const closed = new Promise((resolve) => server.close(resolve))
  const idle = setInterval(() => server.closeIdleConnections(), IDLE_CHECK_MS)
  const deadline = setTimeout(() => server.closeAllConnections(), stopMs)
  await closed
  clearInterval(idle)
  clearTimeout(deadline)
}

/** The client of a request, as far as its connection identifies it. */
export interface ClientAddress {
  /** An IPv4 address, or the first 64 bits of an IPv6 address, which is the block that one client controls. */
  readonly network: string
  /** True for a program on this machine that does not forward requests of other clients. */
  readonly local: boolean
}

/**
 * Returns the peer of the connection, or, behind a proxy on this machine, the address that the proxy appended to
 * X-Forwarded-For. From other peers that header is ignored, because a client could send another address with each
 * request.
 */
export function clientOf({ socket, headers }: Pick<ServiceRequest, 'socket' | 'headers'>): ClientAddress {
  const peer = plainAddress(socket.remoteAddress ?? '')
  if (!isLoopback(peer)) return { network: networkOf(peer), local: false }
  const forwarded = headers['x-forwarded-for']
  if (forwarded === undefined) return { network: peer, local: true }
  const last = String(forwarded).split(',').at(-1)?.trim() ?? ''
  return { network: `forwarded ${networkOf(last)}`, local: false }
}
