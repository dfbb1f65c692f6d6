import type { IncomingHttpHeaders } from 'node:http'
import { connect, type Socket } from 'node:net'
import { Exchange } from './exchange.js'
import type { RestResponse } from './response.js'

/** How long a connection is kept for the next request where the gateway does not say, ms. One that it closes meanwhile is noticed when it does. */
const KEPT_MS = 30_000
/** The gateway's clock for a connection runs ahead of ours, ms. */
const MARGIN_MS = 1000
const TCP_KEEP_ALIVE_MS = 60_000

export interface ConnectionOptions {
  readonly host: string
  readonly port: number
  /** Where bytes are put that are looked at at once and not kept; one for all connections. */
  readonly scratch: Buffer
  /** The answer has been received, and the gateway keeps the connection. */
  readonly onFree: (connection: Connection) => void
  readonly onClose: (connection: Connection) => void
}

/**
 * One connection over plain HTTP, one request at a time. Bodies are read into buffers that are used again (`onread` of node:net): per byte this costs a third of
 * node:http, which makes a new buffer for every 64 KiB. node:http has no way to do that.
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

  /** False when it should not be used again. */
  get good(): boolean {
    return !this.#socket.destroyed && this.#socket.readable && performance.now() < this.#keptUntil
  }

  /** @param head of the request, complete; it has no body */
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

  /** @param error what a request under way fails with */
  destroy(error?: Error): void {
    this.#exchange?.lost(error)
    this.#socket.destroy()
  }

  #take(buffer: Buffer, length: number): boolean {
    if (this.#exchange) return this.#exchange.take(buffer.subarray(0, length))
    // Nothing was asked: whatever it is, it cannot be the answer to what is asked next.
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
    // A connection that waits must not keep the process from ending.
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
