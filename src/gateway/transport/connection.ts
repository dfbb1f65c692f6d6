import type { IncomingHttpHeaders } from 'node:http'
import { connect, type Socket } from 'node:net'
import { nonsense } from '../errors.js'
import { type Framing, framingOf, parseHead, type ResponseHead } from './framing.js'
import { type BodyReceiver, DRAIN_BYTES, DRAIN_MS, lost, type RestResponse } from './response.js'
import type { Sent } from './wire.js'

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

/** Largest head, including the heads of informational answers before it, bytes. */
const MAX_HEAD_BYTES = 64 * 1024
/** Size of the buffers for long bodies, bytes. */
const BUFFER_BYTES = 256 * 1024
const NOTHING = Buffer.alloc(0)
const HEAD_END = '\r\n\r\n'

interface ConnectionOptions {
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

  /** Ends without an error; what it carried learns that from the socket. */
  cut(): void {
    this.#socket.destroy()
  }

  resume(): void {
    this.#socket.resume()
  }

  /** Called when the answer has arrived in full. */
  finished(reusable: boolean, headers: IncomingHttpHeaders): void {
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

/** One request on a connection, and its answer. */
export class Exchange implements Sent {
  readonly answered: Promise<RestResponse>
  readonly reused: boolean
  answeredEarly = false
  readonly #method: string
  readonly #connection: Connection
  #resolve!: (response: RestResponse) => void
  #reject!: (error: unknown) => void
  #start = NOTHING
  #headBytes = 0
  #head: ResponseHead | undefined
  #framing: Framing | undefined
  /** Bytes of the body that arrived with the head. */
  #early: Buffer | undefined
  #receiver: BodyReceiver | undefined
  /** The buffers take turns: the next chunk is lent from this one. */
  #ring: Turn[] = []
  #turn = 0
  #paused = false
  #dropping = false
  #complete = false
  #failure: unknown

  constructor(connection: Connection, method: string, reused: boolean) {
    this.#connection = connection
    this.#method = method
    this.reused = reused
    this.answered = new Promise((resolve, reject) => {
      this.#resolve = resolve
      this.#reject = reject
    })
  }

  get unsentBytes(): number {
    return this.#connection.unsentBytes
  }

  giveUp(error?: Error): void {
    this.#connection.giveUp(this, error)
  }

  get status(): number {
    return this.#head?.status ?? 0
  }

  get headers(): IncomingHttpHeaders {
    return this.#head?.headers ?? {}
  }

  /** The buffer for the next bytes. Undefined when few bytes are expected or the body has no reader yet. */
  get buffer(): Buffer | undefined {
    if (this.#complete || !this.#receiver || this.#dropping) return undefined
    const turn = this.#ring[this.#turn]
    if (!turn) return undefined
    const size = Math.min(BUFFER_BYTES, this.#framing?.left ?? BUFFER_BYTES)
    turn.buffer ??= Buffer.allocUnsafeSlow(size)
    return turn.buffer
  }

  /**
   * Processes bytes from the wire; those outside `buffer` are valid during this call only. Returns false to pause
   * reading.
   */
  take(bytes: Buffer): boolean {
    try {
      return this.#framing ? this.#takeBody(this.#framing, bytes) : this.#takeHead(bytes)
    } catch (error) {
      this.#connection.cut()
      this.lost(error)
      return false
    }
  }

  /** Called when the connection ended, with or without an error. */
  lost(error?: unknown): void {
    if (this.#complete || this.#failure !== undefined) return
    if (!this.#head) {
      this.#failure = error ?? lost()
      this.#reject(this.#failure)
    } else if (error === undefined && this.#framing?.endsWithConnection) {
      this.#complete = true
      this.#receiver?.end()
    } else {
      this.#failure = error ?? lost()
      this.#receiver?.failed(this.#failure)
    }
  }

  whole(): Buffer | undefined {
    if (!this.#complete || this.#receiver || this.#failure !== undefined) return undefined
    const whole = this.#early ?? NOTHING
    this.#early = undefined
    return whole
  }

  read(receiver: BodyReceiver, ahead: number): void {
    if (this.#failure !== undefined) {
      receiver.failed(this.#failure)
      return
    }
    this.#receiver = receiver
    this.#ring = Array.from({ length: ahead }, () => new Turn(() => this.#givenBack()))
    const early = this.#early
    this.#early = undefined
    if (early) this.#lend(receiver, early)
    if (this.#failure !== undefined) return
    if (this.#complete) receiver.end()
    else if (this.#ring[this.#turn]?.busy) this.#paused = true
    else this.#connection.resume()
  }

  drain(): void {
    this.#early = undefined
    if (this.#complete || this.#failure !== undefined) return
    if ((this.#framing?.left ?? Number.POSITIVE_INFINITY) > DRAIN_BYTES) {
      this.destroy()
      return
    }
    const timer = setTimeout(() => this.destroy(), DRAIN_MS).unref()
    const settle = () => clearTimeout(timer)
    this.#receiver = { data: (_, done) => done(), end: settle, failed: settle }
    this.#dropping = true
    this.#ring = [new Turn(() => {})]
    this.#turn = 0
    this.#connection.resume()
  }

  destroy(): void {
    if (!this.#complete) this.#connection.cut()
    this.#early = undefined
    if (this.#failure !== undefined) return
    this.#failure = lost()
    if (!this.#complete) this.#receiver?.failed(this.#failure)
  }

  #takeHead(bytes: Buffer): boolean {
    let rest = this.#start.length === 0 ? bytes : Buffer.concat([this.#start, bytes])
    let from = Math.max(0, this.#start.length - HEAD_END.length)
    for (;;) {
      const end = rest.indexOf(HEAD_END, from, 'latin1')
      if (this.#headBytes + (end < 0 ? rest.length : end) > MAX_HEAD_BYTES)
        throw nonsense('answered with endless headers')
      if (end < 0) {
        // Copied, because the bytes are valid during this call only.
        this.#start = Buffer.from(rest)
        return true
      }
      const head = parseHead(rest.toString('latin1', 0, end))
      rest = rest.subarray(end + HEAD_END.length)
      if (head.status >= 200) return this.#begin(head, rest)
      if (head.status === 101) throw nonsense('changed the protocol unasked')
      this.#headBytes += end
      from = 0
    }
  }

  #begin(head: ResponseHead, rest: Buffer): boolean {
    const framing = framingOf(this.#method, head)
    this.#start = NOTHING
    this.#framing = framing
    const early = framing.decode(rest)
    if (early.length > 0) this.#early = Buffer.from(early)
    this.#head = head
    this.answeredEarly = this.#connection.unsentBytes > 0
    if (framing.complete) this.#finish(framing)
    this.#resolve(this)
    return this.#complete
  }

  #takeBody(framing: Framing, bytes: Buffer): boolean {
    const receiver = this.#receiver
    if (!receiver) throw nonsense('sent a body without a request for it')
    const own = framing.decode(bytes)
    // Before the last bytes are lent, because their receiver may want to reuse the connection.
    if (framing.complete) this.#finish(framing)
    if (own.length > 0) {
      const valid = this.#ring.length === 0 || own.buffer === this.#ring[this.#turn]?.buffer?.buffer
      this.#lend(receiver, valid ? own : Buffer.from(own))
    }
    if (this.#complete) {
      if (this.#failure === undefined) this.#receiver?.end()
      return true
    }
    this.#paused = this.#ring[this.#turn]?.busy === true
    return !this.#paused
  }

  #lend(receiver: BodyReceiver, bytes: Buffer): void {
    const turn = this.#ring[this.#turn]
    if (!turn) {
      receiver.data(bytes, taken)
      return
    }
    this.#turn = (this.#turn + 1) % this.#ring.length
    turn.busy = true
    receiver.data(bytes, turn.done)
  }

  #givenBack(): void {
    if (!this.#paused || this.#ring[this.#turn]?.busy || this.#failure !== undefined) return
    this.#paused = false
    this.#connection.resume()
  }

  #finish(framing: Framing): void {
    this.#complete = true
    this.#connection.finished(!framing.surplus && (this.#head?.persistent ?? false), this.headers)
  }
}

/** For chunks that their receiver has taken during the call. */
function taken(): void {}

/** A buffer that is either being filled or lent. */
class Turn {
  buffer: Buffer | undefined
  busy = false
  readonly done: () => void

  constructor(givenBack: () => void) {
    this.done = () => {
      this.busy = false
      givenBack()
    }
  }
}
