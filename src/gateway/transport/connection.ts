import type { IncomingHttpHeaders } from 'node:http'
import { connect, type Socket } from 'node:net'
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

export interface ConnectionOptions {
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
export class Connection {
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
