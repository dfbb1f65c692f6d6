import type { IncomingHttpHeaders } from 'node:http'
import { connect, isIP, type Socket } from 'node:net'
import { connect as connectSecurely } from 'node:tls'
import { notConnected, timedOut } from '../errors.js'
import type { GatewayTls } from '../gateway-call.js'
import { Exchange } from './exchange.js'
import { lost } from './response.js'

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
/** Node notices the end of a write to a TLS connection that many turns of its loop late, at most. */
const MAX_LATE_TURNS = 2

interface ConnectionOptions {
  readonly host: string
  readonly port: number
  /** For a connection over TLS. */
  readonly secured: Secured | undefined
  /** Longest wait until the connection is made and secured, ms. */
  readonly connectMs: number
  /** Buffer for bytes that are processed immediately and not kept; one for all connections. */
  readonly scratch: Buffer
  /** Called when the answer has been received and the gateway keeps the connection open. */
  readonly onFree: (connection: Connection) => void
  readonly onClose: (connection: Connection) => void
}

/** What the connections over TLS to one gateway share. */
export interface Secured extends GatewayTls {
  /** TLS session of the last connection: the next one resumes it. */
  session?: Buffer | undefined
}

/** The start of an answer that waits until Node has noticed what was sent. */
interface HeldAnswer {
  readonly bytes: Buffer
  /** Bytes that the system had not taken when it arrived. */
  readonly unsent: number
  turnsLeft: number
  /** Nothing follows. */
  last: boolean
}

/**
 * One connection, one request at a time. Over plain HTTP it reads bodies into reused buffers (`onread` of node:net),
 * which costs a third of node:http per byte: node:http allocates a new buffer for every 64 KiB and cannot avoid it.
 */
export class Connection {
  readonly #socket: Socket
  readonly #secured: boolean
  readonly #onFree: ConnectionOptions['onFree']
  #connected = false
  #exchange: Exchange | undefined
  #held: HeldAnswer | undefined
  #keptUntil = 0
  #freed = 0

  constructor({ host, port, secured, connectMs, scratch, onFree, onClose }: ConnectionOptions) {
    this.#onFree = onFree
    this.#secured = secured !== undefined
    if (secured) {
      const named = isIP(host) ? {} : { servername: host }
      const socket = connectSecurely({ ...secured, ...named, host, port, ALPNProtocols: ['http/1.1'] })
      socket.on('session', (session) => {
        secured.session = session
      })
      // `onread` does not fit: bytes of a TLS connection arrive even after it was paused, and would overwrite lent
      // ones.
      socket.on('data', (chunk) => {
        if (!this.#take(chunk)) socket.pause()
      })
      this.#socket = socket
    } else {
      const onread = {
        buffer: () => this.#exchange?.buffer ?? scratch,
        callback: (length: number, buffer: Uint8Array) => this.#take((buffer as Buffer).subarray(0, length)),
      }
      this.#socket = connect({ host, port, onread })
    }
    this.#socket.setNoDelay(true).setKeepAlive(true, TCP_KEEP_ALIVE_MS)
    const timer = setTimeout(() => this.destroy(timedOut('a connection')), connectMs)
    this.#socket.once(secured ? 'secureConnect' : 'connect', () => {
      this.#connected = true
      clearTimeout(timer)
    })
    this.#socket.on('error', (error) => {
      // A session that the gateway fails to resume must not fail the next connection, too.
      if (secured && !this.#connected) secured.session = undefined
      this.#ended(error)
    })
    this.#socket.on('end', () => {
      if (this.#held) this.#held.last = true
      else this.#ended()
    })
    this.#socket.on('close', () => {
      clearTimeout(timer)
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
  send(method: string, head: string, body: Buffer | undefined, reused: boolean): Exchange {
    const socket = this.#socket
    const exchange = new Exchange(this, method, reused)
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
    return exchange
  }

  get unsentBytes(): number {
    return this.#held?.unsent ?? this.#socket.writableLength
  }

  giveUp(exchange: unknown, error: Error | undefined): void {
    if (this.#exchange === exchange) this.destroy(error)
  }

  /** @param error the error for a request in progress */
  destroy(error = lost()): void {
    this.#held = undefined
    this.#exchange?.lost(this.#connected ? error : notConnected(error))
    this.#socket.destroy()
  }

  #take(bytes: Buffer): boolean {
    const exchange = this.#exchange
    const unsent = this.#socket.writableLength
    if (this.#secured && exchange?.status === 0 && unsent > 0) {
      this.#hold({ bytes, unsent, turnsLeft: MAX_LATE_TURNS, last: false })
      return false
    }
    if (exchange) return exchange.take(bytes, this.#secured)
    // Unsolicited bytes cannot be the answer to the next request.
    this.#socket.destroy()
    return false
  }

  #hold(held: HeldAnswer): void {
    this.#held = held
    setImmediate(() => {
      if (this.#held !== held) return
      if (--held.turnsLeft > 0 && this.#socket.writableLength > 0) {
        this.#hold(held)
        return
      }
      this.#held = undefined
      const more = this.#exchange?.take(held.bytes, true)
      if (held.last) this.#ended()
      else if (more) this.#socket.resume()
    })
  }

  cut(): void {
    this.#socket.destroy()
  }

  resume(): void {
    this.#socket.resume()
  }

  finished(reusable: boolean, headers: IncomingHttpHeaders): void {
    this.#exchange = undefined
    // After an answer to a part of the body, the gateway may not read the rest.
    if (!reusable || this.unsentBytes > 0) {
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

  #ended(error?: Error): void {
    const held = this.#held
    if (held) {
      // What a failed write has not sent counts as unsent, although the socket has dropped it.
      if (!error) this.#held = undefined
      this.#exchange?.take(held.bytes, true)
      this.#held = undefined
    }
    const exchange = this.#exchange
    this.#exchange = undefined
    exchange?.lost(this.#connected ? error : notConnected(error ?? lost()))
    // Node leaves a socket open after an error of TLS.
    this.#socket.destroy()
  }
}
