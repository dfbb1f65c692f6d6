import { randomBytes } from 'node:crypto'
import { createServer, IncomingMessage, type Server, ServerResponse, STATUS_CODES } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import express, { type Express } from 'express'
import type { S3Code } from './errors/codes.js'
import { S3Error } from './errors/s3-error.js'
import { errorReply } from './response/error-reply.js'

/** The proxy, or anything else that answers requests and may pass them on. */
export type Handler = (req: IncomingMessage, res: ServerResponse, next: (error?: unknown) => void) => void

export interface ServeOptions {
  /** Sees every request first, ahead of any router. */
  readonly handler: Handler
  readonly host: string
  /** 0 takes a free one. */
  readonly port: number
}

export interface Serving {
  /** http://host:port, with the port that is really listened on. */
  readonly url: string
  readonly port: number
  /**
   * Stops accepting connections, lets running requests end for at most `graceMs`, then cuts what is left.
   * Resolves to the number of connections that were cut.
   */
  close(graceMs: number): Promise<number>
}

const DRAIN_POLL_MS = 50

/**
 * Listens with an HTTP server made for object transfers. What the handler passes on goes to an Express app, whose answer to everything is 404.
 * Rejects with the system's error (EADDRINUSE, EACCES, EADDRNOTAVAIL) when the address cannot be had.
 */
export async function serve({ handler, host, port }: ServeOptions): Promise<Serving> {
  const app = express()
  app.disable('x-powered-by')
  app.disable('etag')
  const connections = new Set<Socket>()
  let draining = false

  const server = createServer(
    {
      ...expressMessages(app),
      // An upload of 5 GiB takes as long as it takes; a body that stalls is the handler's to give up.
      requestTimeout: 0,
      headersTimeout: 60_000,
      // Longer than the 60 s of common load balancers, so that it is they who close idle connections.
      keepAliveTimeout: 75_000,
      maxHeaderSize: 64 * 1024,
      // Node would answer without a document.
      requireHostHeader: false,
    },
    listener,
  )
  server.on('connection', (socket) => {
    connections.add(socket)
    socket.once('close', () => connections.delete(socket))
  })
  // Node drops headers beyond this count silently, signed ones too; maxHeaderSize is the bound.
  server.maxHeadersCount = 0
  // The handler authenticates before it asks for the body with writeContinue().
  server.on('checkContinue', listener)
  server.on('clientError', answerBrokenRequest)
  // No 'upgrade' listener: Node then serves such a request without changing protocols, which Java's client relies on (it offers h2c each time).
  server.on('connect', (_, socket) => refuse(socket, 'MethodNotAllowed'))

  function listener(req: IncomingMessage, res: ServerResponse): void {
    if (draining) res.shouldKeepAlive = false
    if (req.headers.host === undefined && req.httpVersion === '1.1') {
      answer(res, 'BadRequest', 'The request has no Host header.')
    } else {
      handler(req, res, () => app(req, res))
    }
  }

  await listen(server, host, port)
  const address = server.address() as AddressInfo
  return {
    url: `http://${reachable(address)}:${address.port}`,
    port: address.port,
    close(graceMs) {
      draining = true
      return drain(server, connections, graceMs)
    },
  }
}

/** The host part of a URL that leads to the address from this machine. */
function reachable({ address, family }: AddressInfo): string {
  if (address === '0.0.0.0') return '127.0.0.1'
  if (address === '::') return '[::1]'
  return family === 'IPv6' ? `[${address}]` : address
}

function listen(server: Server, host: string, port: number): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', reject)
    server.listen(port, host, () => {
      server.off('error', reject)
      resolve()
    })
  })
}

/**
 * Message classes whose instances are the app's own kind from the start. Express sets the prototype of every request and response to `app.request`
 * and `app.response`; on a live object that is slow (https://developer.mozilla.org/docs/Web/JavaScript/Reference/Global_Objects/Object/setPrototypeOf),
 * and changes nothing when it is the one they were made with.
 */
function expressMessages(app: Express) {
  class Message extends IncomingMessage {}
  class Answer extends ServerResponse {}
  app.request = Object.setPrototypeOf(Message.prototype, app.request)
  app.response = Object.setPrototypeOf(Answer.prototype, app.response)
  return { IncomingMessage: Message, ServerResponse: Answer }
}

async function drain(server: Server, connections: ReadonlySet<Socket>, graceMs: number): Promise<number> {
  const closed = new Promise<void>((resolve) => server.close(() => resolve()))
  const idle = setInterval(() => {
    // A connection whose last answer ends after close() would idle on for keepAliveTimeout.
    server.closeIdleConnections()
    // One opened ahead of need, as load balancers and browsers do, is to Node a request that has begun.
    for (const socket of connections) if (socket.bytesRead === 0) socket.destroy()
  }, DRAIN_POLL_MS)
  let cut = 0
  const grace = setTimeout(() => {
    server.getConnections((_, count) => {
      cut = count ?? 0
      server.closeAllConnections()
    })
  }, graceMs)
  await closed
  clearInterval(idle)
  clearTimeout(grace)
  return cut
}

/** What Node's parser says of a request it gives up, in S3's words. */
const BROKEN: Readonly<Record<string, S3Code>> = {
  HPE_HEADER_OVERFLOW: 'RequestHeaderSectionTooLarge',
  ERR_HTTP_REQUEST_TIMEOUT: 'RequestTimeout',
}

function answerBrokenRequest(error: NodeJS.ErrnoException, socket: Duplex): void {
  // What still comes in on a refused connection is broken too, and already answered.
  if (refused.has(socket)) return
  // Node keeps the answer under way here, and its own handler of this event looks at it too: half an answer must not be followed by another.
  const { _httpMessage: current } = socket as Socket & { _httpMessage?: ServerResponse | null }
  if (!socket.writable || current?.headersSent || error.code === 'ECONNRESET') socket.destroy()
  // The request before the garbage is whole: its answer is true whatever follows, and it is the last one on this connection.
  else if (current?.req.complete) current.shouldKeepAlive = false
  else refuse(socket, current && error.code === 'HPE_INVALID_EOF_STATE' ? 'IncompleteBody' : codeOf(error))
}

function codeOf(error: NodeJS.ErrnoException): S3Code {
  return BROKEN[error.code ?? ''] ?? 'BadRequest'
}

const refused = new WeakSet<Duplex>()

/**
 * How long a refused connection is still read from, ms. Closing while bytes arrive resets it, and the client may never see the answer:
 * https://www.rfc-editor.org/rfc/rfc9112#section-9.6
 */
const LINGER_MS = 1000

function refuse(socket: Duplex, code: S3Code): void {
  refused.add(socket)
  const { status, headers, body } = errorBytes(new S3Error(code))
  const head = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`)
  socket.end(`HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\n${head.join('')}\r\n${body}`)
  socket.on('error', () => socket.destroy())
  const linger = setTimeout(() => socket.destroy(), LINGER_MS)
  socket.once('close', () => clearTimeout(linger))
  socket.once('end', () => socket.destroy())
  socket.resume()
}

function answer(res: ServerResponse, code: S3Code, message: string): void {
  const { status, headers, body } = errorBytes(new S3Error(code, { message }))
  res.writeHead(status, headers).end(body)
}

function errorBytes(error: S3Error) {
  const id = randomBytes(8).toString('hex').toUpperCase()
  const { status, headers, body } = errorReply(error, { id, resource: '/' })
  return {
    status,
    headers: {
      ...headers,
      'x-amz-request-id': id,
      'content-length': Buffer.byteLength(String(body)),
      connection: 'close',
    },
    body,
  }
}
