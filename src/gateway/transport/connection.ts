import type { IncomingHttpHeaders, OutgoingHttpHeaders } from 'node:http'
import { connect, type Socket } from 'node:net'
import { timedOut } from '../errors.js'
import { Exchange } from './exchange.js'
import type { RestResponse } from './response.js'

/**
 * Time for which a connection is kept when the gateway does not state one, ms. A connection that the gateway closes
 * earlier is noticed.
 */
const KEPT_MS = 30_000
/** Subtracted from the gateway's keep-alive timeout, ms: its clock for a connection starts earlier. */
const MARGIN_MS = 1000
const TCP_KEEP_ALIVE_MS = 60_000
/** A body up to this size is sent in one piece with its head, bytes. */
const JOINED_BYTES = 8 * 1024

interface ConnectionOptions {
  readonly host: string
  readonly port: number
  /** Buffer for bytes that are processed immediately and not kept; one for all connections. */
  readonly scratch: Buffer
  /** Called when the answer has been received and the gateway keeps the connection open. */
  readonly onFree: (connection: Connection) => void
  readonly onClose: (connection: Connection) => void
}

/** A request on its connection. */
export interface SentRequest {
  /** See Exchange.answered. */
  readonly answered: Promise<RestResponse>
  /** True when the connection carried another request before: the gateway may have closed it in the meantime. */
  readonly reused: boolean
  /** Bytes that the system has not taken yet. */
  readonly unsentBytes: number
  /** True if the head of the answer came while the system had not taken the whole request. */
  readonly answeredEarly: boolean
  /** Closes the connection, unless the answer has arrived. */
  destroy(error?: Error): void
}

/**
 * One connection over plain HTTP, one request at a time. Reads bodies into reused buffers (`onread` of node:net), which
 * costs a third of node:http per byte: node:http allocates a new buffer for every 64 KiB and cannot avoid it.
 */
class Connection {
  readonly #socket: Socket
  readonly #onFree: ConnectionOptions['onFree']
  #exchange: Exchange | undefined
  #keptUntil = 0
  #freed = 0

  constructor({ host, port, scratch, onFree, onClose }: ConnectionOptions) {
    this.#onFree = onFree
    this.#socket = connect({
      host,
      port,
      noDelay: true,
      keepAlive: true,
      keepAliveInitialDelay: TCP_KEEP_ALIVE_MS,
      onread: {
        buffer: () => this.#exchange?.buffer ?? scratch,
        callback: (length, buffer) => this.#take(buffer as Buffer, length),
      },
    })
    this.#socket.on('error', (error) => this.#exchange?.lost(error))
    this.#socket.on('end', () => this.#ended())
    this.#socket.on('close', () => {
      this.#ended()
      onClose(this)
    })
  }

  /** False when the connection must not be reused. */
  get good(): boolean {
    return !this.#socket.destroyed && this.#socket.readable && performance.now() < this.#keptUntil
  }

  /** Time since the last answer, ms. */
  get idleMs(): number {
    return performance.now() - this.#freed
  }

  /** @param head head of the request, complete, with the length of the body */
  send(method: string, head: string, body: Buffer | undefined, reused: boolean): SentRequest {
    const socket = this.#socket
    const exchange = new Exchange(method, {
      answering() {
        sent.answeredEarly = socket.writableLength > 0
      },
      resume: () => socket.resume(),
      finished: (reusable, headers) => this.#finished(reusable, headers),
      destroy: () => socket.destroy(),
    })
    const sent = new Sent(this, exchange, reused)
    this.#exchange = exchange
    socket.ref()
    if (body === undefined || body.length <= JOINED_BYTES)
      socket.write(body === undefined ? head : head + body.toString('latin1'), 'latin1')
    else {
      socket.cork()
      socket.write(head, 'latin1')
      socket.write(body)
      socket.uncork()
    }
    return sent
  }

  /** Bytes that the system has not taken yet. */
  get unsentBytes(): number {
    return this.#socket.writableLength
  }

  /** Closes the connection, unless it carries another request by now. */
  giveUp(exchange: Exchange, error: Error | undefined): void {
    if (this.#exchange === exchange) this.destroy(error)
  }

  /** @param error the error for a request in progress */
  destroy(error?: Error): void {
    // As the system's own errors of that step: nothing was sent.
    if (error && this.#socket.connecting) Object.assign(error, { syscall: 'connect' })
    this.#exchange?.lost(error)
    this.#socket.destroy()
  }

  #take(buffer: Buffer, length: number): boolean {
    if (this.#exchange) return this.#exchange.take(buffer.subarray(0, length))
    // Unsolicited bytes cannot be the answer to the next request.
    this.#socket.destroy()
    return false
  }

  #finished(reusable: boolean, headers: IncomingHttpHeaders): void {
    this.#exchange = undefined
    // After an answer to a part of the body, the gateway may not read the rest.
    if (!reusable || this.#socket.writableLength > 0) {
      this.#socket.destroy()
      return
    }
    this.#freed = performance.now()
    const reported = /\btimeout=(\d{1,6})/i.exec(String(headers['keep-alive'] ?? ''))?.[1]
    this.#keptUntil = this.#freed + (reported === undefined ? KEPT_MS : Number(reported) * 1000 - MARGIN_MS)
    // An idle connection must not keep the process alive.
    this.#socket.unref()
    this.#onFree(this)
  }

  #ended(): void {
    const exchange = this.#exchange
    this.#exchange = undefined
    exchange?.lost()
    this.#socket.destroy()
  }
}

/** A class, because an object with a getter of its own is slow to make. */
class Sent implements SentRequest {
  readonly answered: Promise<RestResponse>
  readonly reused: boolean
  answeredEarly = false
  readonly #connection: Connection
  readonly #exchange: Exchange

  constructor(connection: Connection, exchange: Exchange, reused: boolean) {
    this.answered = exchange.answered
    this.reused = reused
    this.#connection = connection
    this.#exchange = exchange
  }

  get unsentBytes(): number {
    return this.#connection.unsentBytes
  }

  destroy(error?: Error): void {
    this.#connection.giveUp(this.#exchange, error)
  }
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
    const timer = setTimeout(() => sent.destroy(timedOut('the first byte')), timeoutMs)
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
  send({ method, path, headers, body, maxIdleMs = Number.POSITIVE_INFINITY }: WireRequest): SentRequest {
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
