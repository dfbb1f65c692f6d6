import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { Duplex } from 'node:stream'
import { answerForm, hasUnknownCoding, type ParseError } from '../../common/broken-request.js'
import { ConnectionBound } from '../../common/http/connection-bound.js'
import type { ServicesLog } from '../log.js'
import { BodyGate } from './body-gate.js'
import { isLoopback } from './client-address.js'
import { reply } from './reply.js'

/** The code of a request whose body has an unknown transfer coding: the parser accepts it. */
export const UNKNOWN_CODING = 'UNKNOWN_CODING'

export interface HttpServerOptions {
  readonly maxHeaderBytes: number
  /** Most open connections. */
  readonly maxConnections: number
  readonly log: ServicesLog
  /** Answers a request; never rejects. */
  readonly handle: (request: IncomingMessage, response: ServerResponse, body: BodyGate) => Promise<void>
  /**
   * The answer to bytes that the parser rejects.
   * @param code of the parser, such as HPE_HEADER_OVERFLOW, or UNKNOWN_CODING
   */
  readonly broken: (code: string | undefined) => {
    /** Number and phrase, such as `400 Bad Request`. */
    readonly status: string
    readonly type: string
    readonly text: string
  }
}

/** Creates the HTTP server of a service; it does not listen yet. */
export function createHttpServer({ handle, broken, ...options }: HttpServerOptions): Server {
  const server = createServer({
    maxHeaderSize: options.maxHeaderBytes,
    headersTimeout: 60_000,
    // Bodies may take hours; the reader aborts one that stalls.
    requestTimeout: 0,
    keepAliveTimeout: 75_000,
  })
  const latest = new WeakMap<Duplex, ServerResponse>()
  const serve = (waiting: boolean) => (request: IncomingMessage, response: ServerResponse) => {
    latest.set(request.socket, response)
    // A client that disconnects must not stop the server.
    response.on('error', () => {})
    const body = new BodyGate(response, waiting)
    if (!hasUnknownCoding(request.headers)) return handle(request, response, body)
    const { status, type, text } = broken(UNKNOWN_CODING)
    return reply({ request, response, body }, Number.parseInt(status, 10), ['Content-Type', type], Buffer.from(text))
  }
  server.on('request', serve(false))
  server.on('checkContinue', serve(true))
  server.on('clientError', (error, socket) => answerBrokenRequest(error, socket, latest.get(socket), broken))
  // The connections of the proxy, and of a reverse proxy on this machine, are those of many clients.
  const bounds = { total: options.maxConnections, isShared: isLoopback }
  new ConnectionBound(server, bounds, (because) =>
    options.log.warn({ because, maxConnections: bounds.total }, 'Connections without a running request were closed.'),
  )
  return server
}

/**
 * Answers a request that is not HTTP, or that ends before its Content-Length.
 * @param latest the last response on this connection: while it is being sent, no other may be sent
 */
function answerBrokenRequest(
  error: ParseError,
  socket: Duplex,
  latest: ServerResponse | undefined,
  broken: HttpServerOptions['broken'],
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
  const { status, type, text } = broken(error.code)
  const current = latest && !latest.req.complete ? latest.req : undefined
  const form = answerForm(error, socket, current)
  const length = form === 'empty' ? 0 : Buffer.byteLength(text)
  const head = `HTTP/1.1 ${status}\r\nConnection: close\r\nContent-Type: ${type}\r\nContent-Length: ${length}\r\n\r\n`
  socket.end(form === 'document' ? head + text : head)
}
