import type { IncomingHttpHeaders } from 'node:http'
import { nonsense } from '../errors.js'
import { type Framing, framingOf, parseHead, type ResponseHead } from './framing.js'
import { type BodyReceiver, lost, MAX_DRAIN_BYTES, MAX_DRAIN_MS, type RestResponse } from './response.js'
import type { SentResponse } from './wire.js'

/** Largest head, including the heads of informational answers before it, bytes. */
const MAX_HEAD_BYTES = 64 * 1024
/** Size of the buffers for long bodies, bytes. */
const BUFFER_BYTES = 256 * 1024
const NOTHING = Buffer.alloc(0)
const HEAD_END = '\r\n\r\n'

/** The connection of an exchange, as that one uses it. */
interface Carrier {
  /** Bytes that the system has not taken yet. */
  readonly unsentBytes: number
  /** Closes the connection, unless it carries another exchange by now. */
  giveUp(exchange: SentResponse, error: Error | undefined): void
  /** Ends without an error; what it carried learns that from the socket. */
  cut(): void
  resume(): void
  /** Called when the answer has arrived in full. */
  finished(reusable: boolean, headers: IncomingHttpHeaders): void
}

/** One request on a connection, and its answer. */
export class Exchange implements SentResponse {
  readonly answered: Promise<RestResponse>
  readonly reused: boolean
  answeredEarly = false
  readonly #method: string
  readonly #connection: Carrier
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

  constructor(connection: Carrier, method: string, reused: boolean) {
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
   * Processes bytes from the wire. Returns false to pause reading.
   * @param own they stay as they are; otherwise those outside `buffer` are valid during this call only
   */
  take(bytes: Buffer, own: boolean): boolean {
    try {
      return this.#framing ? this.#takeBody(this.#framing, bytes, own) : this.#takeHead(bytes)
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
    if ((this.#framing?.left ?? Number.POSITIVE_INFINITY) > MAX_DRAIN_BYTES) {
      this.destroy()
      return
    }
    const timer = setTimeout(() => this.destroy(), MAX_DRAIN_MS).unref()
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

  #takeBody(framing: Framing, received: Buffer, own: boolean): boolean {
    const receiver = this.#receiver
    if (!receiver) throw nonsense('sent a body without a request for it')
    const bytes = framing.decode(received)
    // Before the last bytes are lent, because their receiver may want to reuse the connection.
    if (framing.complete) this.#finish(framing)
    if (bytes.length > 0) {
      const valid = own || this.#ring.length === 0 || bytes.buffer === this.#ring[this.#turn]?.buffer?.buffer
      this.#lend(receiver, valid ? bytes : Buffer.from(bytes))
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
