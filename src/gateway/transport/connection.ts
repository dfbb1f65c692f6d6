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

export interface ConnectionOptions {
  readonly host: string
  readonly port: number
  /** Buffer for bytes that are processed immediately and not kept; one for all connections. */
  readonly scratch: Buffer
  /** Called when the answer has been received and the gateway keeps the connection open. */
  readonly onFree: (connection: Connection) => void
  readonly onClose: (connection: Connection) => void
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

  /** @param head head of the request, complete; the request has no body */
  send(method: 'GET' | 'HEAD', head: string): Promise<RestResponse> {
    const socket = this.#socket
    const exchange = new Exchange(method, {
      resume: () => socket.resume(),
      finished: (reusable, headers) => this.#finished(reusable, headers),
      destroy: () => socket.destroy(),
    })
    this.#exchange = exchange
    socket.ref()
    socket.write(head, 'latin1')
    return exchange.answered
  }

  /** @param error the error for a request in progress */
  destroy(error?: Error): void {
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
    if (!reusable) {
      this.#socket.destroy()
      return
    }
    const told = /\btimeout=(\d{1,6})/i.exec(String(headers['keep-alive'] ?? ''))?.[1]
    this.#keptUntil = performance.now() + (told === undefined ? KEPT_MS : Number(told) * 1000 - MARGIN_MS)
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
