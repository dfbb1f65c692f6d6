import { randomBytes } from 'node:crypto'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import type { AddressInfo, Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { type ClosedBecause, ConnectionBound, type ConnectionBounds } from '../../common/connection-bound.js'
import { S3Error } from '../../common/errors/s3-error.js'
import { settleExpectation } from '../../common/expectation.js'
import { addressing } from '../../src/http/addressing.js'
import { errorReply } from '../../src/http/error-reply.js'
import { readOutline } from '../../src/http/read-request.js'
import { send } from '../../src/http/send.js'
import { errorFormatOf } from '../../src/plugins/calls/format.js'
import { answerBrokenRequest, refuse } from './refuse-broken.js'
import type { TlsSource } from './tls.js'

/** The proxy, or another handler that answers every request. */
export type Handler = (req: IncomingMessage, res: ServerResponse) => void

export interface ServeOptions {
  /** Receives every request before any router. */
  readonly handler: Handler
  readonly host: string
  /** 0 selects a free port. */
  readonly port: number
  /** Bounds of open connections; default none. */
  readonly connections?: ConnectionBounds
  /** Called when connections were closed because of these bounds, at most once a minute. */
  readonly onClosed?: (because: ClosedBecause) => void
  /** Serves HTTPS alone; default HTTP. Always HTTP/1.1. */
  readonly tls?: TlsSource | undefined
}

export interface Serving {
  /** http://host:port or https://host:port with the actual port. */
  readonly url: string
  readonly port: number
  /** Changes the bounds of connections, if there are any. Connections beyond them stay open. */
  limit(bounds: ConnectionBounds): void
  /**
   * Serves new connections for `delayMs` more (default 0), with the end of each announced. Then stops accepting
   * connections, waits at most `graceMs` for running requests, and closes the remaining connections. Resolves to their
   * number.
   */
  close(graceMs: number, delayMs?: number): Promise<number>
}

const DRAIN_POLL_MS = 50
/** Time in which a new connection may bring a request while the server drains, ms. */
const SILENT_MS = 1000

/** Enough for a target of 8 KiB, 8 KiB of metadata and all other headers. */
const MAX_HEAD_BYTES = 64 * 1024

/**
 * Bytes that Node reads beyond MAX_HEAD_BYTES. Node reports neither method nor target of a request that exceeds its own
 * bound, and they determine the form of the response; with all headers read, the request is refused like any other.
 */
const SPARE_HEAD_BYTES = 64 * 1024

/** Longest TLS handshake, ms. */
const MAX_HANDSHAKE_MS = 10_000

/**
 * Starts an HTTP server that is configured for object transfers. It calls the handler without Express in between, whose
 * router costs 64 µs of a request that costs 131 µs; a program mounts the same handler with `app.use`: docs/library.md.
 * Rejects with the system error (EADDRINUSE, EACCES, EADDRNOTAVAIL) if it cannot listen.
 */
export async function serve(options: ServeOptions): Promise<Serving> {
  const { handler, host, port, tls } = options
  /** With the times at which they were accepted. */
  const connections = new Map<Socket, number>()
  let draining = false

  const settings = {
    // An upload of 5 GiB may take hours; the handler applies the timeouts of bodies.
    requestTimeout: 0,
    headersTimeout: 60_000,
    // Longer than the 60 s of common load balancers, so that they close idle connections first.
    keepAliveTimeout: 75_000,
    maxHeaderSize: MAX_HEAD_BYTES + SPARE_HEAD_BYTES,
    // Node's own response has no error document.
    requireHostHeader: false,
  }
  const server = tls ? createSecureServer(tls) : createServer(settings, listener)
  const track = (socket: Socket) => {
    connections.set(socket, performance.now())
    socket.once('close', () => connections.delete(socket))
  }
  server.on('connection', track)
  // The socket of a connection after its handshake is another one.
  server.on('secureConnection', track)
  // Unlimited: Node silently drops headers beyond the count, signed ones too. MAX_HEAD_BYTES is the bound.
  server.maxHeadersCount = 0
  // The handler authenticates before it requests the body with writeContinue().
  server.on('checkContinue', (incoming: IncomingMessage, outgoing: ServerResponse) => {
    settleExpectation(incoming, outgoing)
    listener(incoming, outgoing)
  })
  // S3 ignores other expectations. Node would answer 417, which S3 clients do not understand.
  server.on('checkExpectation', listener)
  server.on('clientError', answerBrokenRequest)
  // There is no 'upgrade' listener: Node then serves such a request without changing protocols. Java's client relies on
  // this, as it offers h2c with each request.
  server.on('connect', (_, socket) => refuse(socket, 'MethodNotAllowed'))
  const bound = options.connections && new ConnectionBound(server, options.connections, options.onClosed ?? (() => {}))

  function listener(req: IncomingMessage, res: ServerResponse): void {
    if (draining) res.shouldKeepAlive = false
    if (req.headers.host === undefined && req.httpVersion === '1.1') {
      void answer(req, res, new S3Error('BadRequest', { message: 'The request has no Host header.' }))
    } else if (headBytes(req) > MAX_HEAD_BYTES) {
      void answer(req, res, new S3Error('RequestHeaderSectionTooLarge'))
    } else {
      handler(req, res)
    }
  }

  function createSecureServer(tls: TlsSource): Server {
    const secured = createTlsServer({ ...settings, ...tls.options(), handshakeTimeout: MAX_HANDSHAKE_MS }, listener)
    tls.onChange((changed) => secured.setSecureContext(changed))
    return secured
  }

  await listen(server, host, port)
  const address = server.address() as AddressInfo
  return {
    url: `${tls ? 'https' : 'http'}://${reachable(address)}:${address.port}`,
    port: address.port,
    limit(bounds) {
      if (bound !== undefined) bound.bounds = bounds
    },
    async close(graceMs, delayMs = 0) {
      draining = true
      // The kernel accepts connections in advance, and resets those that were not taken when the port closes: a
      // balancer that has sent a request on one answers 502. In this time it learns that the server is not ready.
      if (delayMs > 0) await sleep(delayMs)
      return drain(server, connections, graceMs)
    },
  }
}

/** Returns the host part of a URL by which this machine reaches the address. */
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

async function drain(server: Server, connections: ReadonlyMap<Socket, number>, graceMs: number): Promise<number> {
  const closed = new Promise<void>((resolve) => server.close(() => resolve()))
  const idle = setInterval(() => {
    // A connection whose last response ends after close() would stay idle for keepAliveTimeout.
    server.closeIdleConnections()
    // Load balancers and browsers open connections in advance; Node treats such a connection as a started request. The
    // request of a new one may be on its way: a balancer does not send it again.
    const now = performance.now()
    for (const [socket, since] of connections) if (socket.bytesRead === 0 && now - since > SILENT_MS) socket.destroy()
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

/** A request that is refused here may be for another handler than the S3 endpoint. */
const NO_DOMAINS = addressing({})

/** Refuses a request whose headers were read. Reads the rest of its body, so that the client receives the response. */
async function answer(incoming: IncomingMessage, outgoing: ServerResponse, error: S3Error): Promise<void> {
  const id = randomBytes(8).toString('hex').toUpperCase()
  const facts = { id, resource: '/', form: errorFormatOf(readOutline(incoming, id, NO_DOMAINS)) }
  const { status, headers, body } = errorReply(error, facts)
  await send(incoming, outgoing, { status, headers: { ...headers, connection: 'close' }, body }, id, () => facts)
}

/** Bytes of the target and of the names and values of the headers; Node's own bound counts the same. */
function headBytes({ url = '', rawHeaders }: IncomingMessage): number {
  let bytes = url.length
  for (const text of rawHeaders) bytes += text.length
  return bytes
}
