import type { IncomingMessage } from 'node:http'
import type { Socket } from 'node:net'
import type { Writable } from 'node:stream'
import type { BodySink } from './body-sink.js'
import { type HeaderList, HttpError, ReceiveError } from './errors.js'
import { PortRequest } from './port.js'
import type { Target } from './routes.js'

/** A request over HTTP, or from a client in this process. */
export type ServiceRequest = IncomingMessage | PortRequest

/** What both kinds of answers have of one of node:http. */
export interface ServiceResponse extends Writable {
  readonly headersSent: boolean
  writeHead(status: number, headers: HeaderList): unknown
  flushHeaders(): void
  /** Null without a connection of its own. */
  readonly socket: Socket | null
  writeContinue(): void
  /** Resolves with the bytes that a client in this process takes now; absent for others. Rejects when it has gone. */
  room?(): Promise<number>
  /** Sends a client in this process a chunk within the room, whose memory moves to it; absent for others. */
  give?(chunk: Uint8Array<ArrayBuffer>): void
  /** Memory that such a client has given back, for a chunk of this size; undefined when there is none that fits. */
  spare?(bytes: number): Buffer | undefined
}

/**
 * Pipes a request body to the sink. Resolves when exactly `length` bytes have arrived, or the whole body if that is
 * undefined. Throws ReceiveError when the client ends early or sends nothing for `idleMs`, and whatever the sink
 * throws.
 */
export function receive(
  request: ServiceRequest,
  length: number | undefined,
  sink: BodySink,
  idleMs: number,
): Promise<void> {
  if (request instanceof PortRequest) {
    const { parts, whole } = request
    return parts ? parts.receive(length, sink, idleMs) : take(whole, length, sink)
  }
  return new Promise((resolve, reject) => {
    let received = 0
    // The end of a body may come while the sink still takes its last chunk, or refuses it.
    let sinkBusy = false
    let ended = false
    let settled = false
    const timer = setTimeout(() => settle(new ReceiveError('Stalled')), idleMs)
    const settle = (error?: unknown): void => {
      settled = true
      clearTimeout(timer)
      request.off('data', take).off('end', end).off('close', cut).off('error', cut)
      // The parser may still emit the error that ended the request.
      request.on('error', () => {})
      if (error === undefined) resolve()
      else {
        request.pause()
        reject(error)
      }
    }
    const take = (chunk: Buffer): void => {
      received += chunk.length
      timer.refresh()
      if (sink.write(chunk)) return
      request.pause()
      sinkBusy = true
      sink.ready().then(
        () => {
          sinkBusy = false
          // The client may have gone meanwhile: refresh() would start the timer again, and keep the process.
          if (settled) return
          timer.refresh()
          if (ended) end()
          else request.resume()
        },
        (error) => settle(error),
      )
    }
    const end = (): void => {
      ended = true
      if (sinkBusy) return
      settle(length === undefined || received === length ? undefined : new ReceiveError('IncompleteBody'))
    }
    const cut = (): void => {
      if (!ended) settle(new ReceiveError('IncompleteBody'))
    }

    // A complete body is cut, too: what the connection still held when it was closed is not emitted.
    if (request.destroyed) return cut()
    request.on('data', take).on('end', end).on('close', cut).on('error', cut)
  })
}

/** Does what `receive` does, for a body that has arrived. */
async function take(body: Buffer, length: number | undefined, sink: BodySink): Promise<void> {
  if (body.length > 0 && !sink.write(body)) await sink.ready()
  if (length !== undefined && body.length !== length) throw new ReceiveError('IncompleteBody')
}

/** Tracks whether the client was asked to send its body, if it waits for that (RFC 9110, 10.1.1). */
export class BodyGate {
  readonly #response: ServiceResponse
  #waiting: boolean

  /** @param waiting true when the client sent `Expect: 100-continue` */
  constructor(response: ServiceResponse, waiting: boolean) {
    this.#response = response
    this.#waiting = waiting
  }

  /** True while the client waits for 100 Continue. */
  get waiting(): boolean {
    return this.#waiting
  }

  open(): void {
    if (!this.#waiting) return
    this.#waiting = false
    this.#response.writeContinue()
  }
}

/** One request and its response. */
export interface HttpExchange {
  readonly request: ServiceRequest
  readonly response: ServiceResponse
  readonly target: Target
  readonly body: BodyGate
}

/** How much of a body is taken. */
interface BodyBounds {
  readonly maxBytes: number
  /** A body that stops arriving for this long is refused, ms. */
  readonly idleMs: number
  /** Longest time from the first byte that is asked for to the last, ms; default: none. */
  readonly totalMs?: number
  /** ms of a monotonic clock, for `totalMs`. */
  readonly now?: () => number
}

/** Receives a bounded body. Throws HttpError: 413 when it is too large, 408 when it takes too long. */
export async function receiveBounded(
  { request, body }: Pick<HttpExchange, 'request' | 'body'>,
  { maxBytes, idleMs, totalMs = Number.POSITIVE_INFINITY, now = () => performance.now() }: BodyBounds,
  sink: BodySink,
): Promise<void> {
  const tooLarge = () => new HttpError(413, `The body may have at most ${maxBytes} bytes.`)
  if (Number(request.headers['content-length'] ?? 0) > maxBytes) throw tooLarge()
  const begun = now()
  let size = 0
  let refusal: HttpError | undefined
  body.open()
  const write = (chunk: Buffer): boolean => {
    size += chunk.length
    // Each chunk asks for the time: one that does not arrive is a stall, which has a limit of its own.
    if (size > maxBytes) refusal = tooLarge()
    else if (now() - begun >= totalMs) refusal = new HttpError(408, `The body took more than ${totalMs / 1000} s.`)
    return refusal === undefined && sink.write(chunk)
  }
  const ready = () => (refusal === undefined ? sink.ready() : Promise.reject(refusal))
  await receive(request, undefined, { write, ready }, idleMs)
}

/** Reads a small body into memory. Throws as `receiveBounded` does. */
export async function readBody(exchange: Pick<HttpExchange, 'request' | 'body'>, bounds: BodyBounds): Promise<Buffer> {
  const blocks = new Blocks()
  const write = (chunk: Buffer): boolean => {
    blocks.add(chunk)
    return true
  }
  await receiveBounded(exchange, bounds, { write, ready: () => Promise.resolve() })
  return Buffer.concat(blocks.all())
}

/** Bytes of a block. */
const BLOCK = 64 * 1024

/**
 * Keeps bytes in blocks of 64 KiB, however small the chunks in which they arrive: each chunk by itself would cost some
 * 100 bytes more, and a client chooses their size.
 */
export class Blocks {
  readonly #full: Buffer[] = []
  #last = Buffer.alloc(0)
  #used = 0
  #size = 0

  add(chunk: Uint8Array): void {
    for (let at = 0; at < chunk.length; ) {
      if (this.#used === this.#last.length) this.#begin(chunk.length - at)
      const taken = Math.min(chunk.length - at, this.#last.length - this.#used)
      this.#last.set(chunk.subarray(at, at + taken), this.#used)
      this.#used += taken
      at += taken
    }
    this.#size += chunk.length
  }

  /** The bytes, in blocks of 64 KiB at most. */
  all(): Buffer[] {
    return this.#used === 0 ? [...this.#full] : [...this.#full, this.#last.subarray(0, this.#used)]
  }

  /** Begins a block: the first one is small, because most bodies are. */
  #begin(wanted: number): void {
    if (this.#used > 0 && this.#used < BLOCK) {
      const larger = Buffer.allocUnsafe(BLOCK)
      larger.set(this.#last)
      this.#last = larger
      return
    }
    if (this.#used > 0) this.#full.push(this.#last)
    this.#last = Buffer.allocUnsafe(this.#size === 0 ? Math.min(BLOCK, Math.max(1024, wanted)) : BLOCK)
    this.#used = 0
  }
}
