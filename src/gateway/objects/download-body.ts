import { S3Error } from '../../../common/errors/s3-error.js'
import type { ByteRange, Download, GatewayObject } from '../../api/gateway.js'
import type { ByteSink, LentSink, Transfer } from '../../api/request.js'
import { timedOut, unavailable } from '../errors.js'
import { type BodyReceiver, lost, MAX_DRAIN_BYTES, type RestResponse } from '../transport/response.js'

/** Most chunks lent to the sink at a time: one on its way to the client, one waiting, one being filled. */
const MAX_LENT = 3

interface BodyPlan {
  readonly span: Span
  /** Bytes of the response before `span.first`, which are dropped. */
  readonly skip: number
  /** Bytes of the response after `span.last`, which are dropped. */
  readonly surplus: number
  /** Longest pause without a byte while the sink is ready for one, ms. */
  readonly idleMs: number
}

/** Delivers exactly the bytes of a span out of a response that may hold more. Fails rather than deliver fewer bytes. */
export class SpanBody implements Transfer {
  readonly first: number
  readonly last: number
  readonly #response: RestResponse | undefined
  readonly #plan: BodyPlan
  #consumed = false
  #giveUp: (() => void) | undefined

  /** @param response may be absent when the span is empty */
  constructor(response: RestResponse | undefined, plan: BodyPlan) {
    this.#response = response
    this.#plan = plan
    this.first = plan.span.first
    this.last = plan.span.last
  }

  whole(): Buffer | undefined {
    const wanted = this.last - this.first + 1
    const whole = this.#consumed || wanted === 0 ? undefined : this.#response?.whole()
    if (!whole) return undefined
    this.#consumed = true
    const bytes = cut(whole, this.#plan.skip, wanted)
    if (bytes.length < wanted) throw unavailable(cutShort(wanted - bytes.length))
    return bytes
  }

  consume(sink: ByteSink): Promise<void> {
    return this.#deliver((chunk, done) => {
      const waiting = sink(Buffer.from(chunk))
      if (waiting) waiting.then(() => done(), done)
      else done()
    }, 1)
  }

  lend(sink: LentSink): Promise<void> {
    return this.#deliver(sink, MAX_LENT)
  }

  discard(): void {
    this.#giveUp?.()
    this.#response?.destroy()
  }

  #deliver(sink: LentSink, ahead: number): Promise<void> {
    if (this.#consumed) return Promise.reject(new TypeError('a download can be consumed once'))
    this.#consumed = true
    const wanted = this.last - this.first + 1
    const response = this.#response
    if (!response || wanted === 0) {
      response?.drain()
      return Promise.resolve()
    }
    return new Promise((resolve, reject) => {
      const delivery = new Delivery(response, this.#plan, wanted, sink, { resolve, reject })
      this.#giveUp = () => delivery.fail(unavailable(lost()))
      response.read(delivery, ahead)
    })
  }
}

/** An object together with some of its bytes. */
export class DownloadBody extends SpanBody implements Download {
  readonly object: GatewayObject

  /** See SpanBody. */
  constructor(response: RestResponse | undefined, plan: BodyPlan & { readonly object: GatewayObject }) {
    super(response, plan)
    this.object = plan.object
  }
}

/** Delivers the wanted part of one body to a sink. */
class Delivery implements BodyReceiver {
  readonly #response: RestResponse
  readonly #plan: BodyPlan
  readonly #sink: LentSink
  readonly #promise: { resolve(): void; reject(error: unknown): void }
  readonly #timer: NodeJS.Timeout
  #skip: number
  #left: number
  /** Chunks lent to the sink and not returned yet. */
  #lent = 0
  #settled = false

  constructor(
    response: RestResponse,
    plan: BodyPlan,
    wanted: number,
    sink: LentSink,
    promise: { resolve(): void; reject(error: unknown): void },
  ) {
    this.#response = response
    this.#plan = plan
    this.#sink = sink
    this.#promise = promise
    this.#skip = plan.skip
    this.#left = wanted
    this.#timer = setTimeout(() => {
      // A slow client must not count as a stalled gateway.
      if (this.#lent > 0) this.#timer.refresh()
      else this.fail(unavailable(timedOut('an object body')))
    }, plan.idleMs)
  }

  data(received: Buffer, release: () => void): void {
    const chunk = cut(received, this.#skip, this.#left)
    this.#skip -= Math.min(this.#skip, received.length)
    if (this.#settled || chunk.length === 0) {
      release()
      return
    }
    this.#timer.refresh()
    this.#left -= chunk.length
    this.#lent++
    if (this.#left === 0) this.#leaveTheRest()
    try {
      this.#sink(chunk, (error) => {
        this.#lent--
        release()
        if (error !== undefined) this.fail(error)
        if (this.#settled) return
        this.#timer.refresh()
        if (this.#left === 0 && this.#lent === 0) this.#settle(this.#promise.resolve)
      })
    } catch (error) {
      this.fail(error)
    }
  }

  end(): void {
    if (this.#left > 0) this.fail(unavailable(cutShort(this.#left)))
  }

  failed(error: unknown): void {
    if (this.#left > 0) this.fail(unavailable(error))
  }

  fail(error: unknown): void {
    if (this.#settled) return
    this.#settle(() => this.#promise.reject(error))
    this.#response.destroy()
  }

  #leaveTheRest(): void {
    if (this.#plan.surplus > MAX_DRAIN_BYTES) this.#response.destroy()
    else this.#response.drain()
  }

  #settle(settle: () => void): void {
    if (this.#settled) return
    this.#settled = true
    clearTimeout(this.#timer)
    settle()
  }
}

function cut(chunk: Buffer, skip: number, left: number): Buffer {
  if (skip === 0 && chunk.length <= left) return chunk
  return chunk.subarray(Math.min(skip, chunk.length), Math.min(chunk.length, skip + left))
}

function cutShort(left: number): Error {
  return Object.assign(new Error(`the object's body ended ${left} bytes early`), { code: 'ECONNRESET' })
}

/** Byte positions. `last` is `first - 1` when the span is empty. */
export interface Span {
  readonly first: number
  readonly last: number
}

/**
 * Resolves a range against an object of `size` bytes; without a range, the span is the whole object. Throws
 * InvalidRange when the range selects no byte (RFC 9110 section 14.1.2).
 */
export function resolveRange(range: ByteRange | undefined, size: number): Span {
  if (range === undefined) return { first: 0, last: size - 1 }
  const first = 'suffix' in range ? Math.max(0, size - range.suffix) : range.first
  const last = 'suffix' in range ? size - 1 : Math.min(range.last ?? size - 1, size - 1)
  if (first > last) throw invalidRange(size)
  return { first, last }
}

export function rangeHeader(range: ByteRange): string {
  return 'suffix' in range ? `bytes=-${range.suffix}` : `bytes=${range.first}-${range.last ?? ''}`
}

/** Parses `bytes 0-9/100`. Returns undefined for anything else. */
export function parseContentRange(value: string | undefined): (Span & { size: number }) | undefined {
  const match = /^bytes (\d+)-(\d+)\/(\d+)$/.exec(value ?? '')
  if (!match) return undefined
  return { first: Number(match[1]), last: Number(match[2]), size: Number(match[3]) }
}

export function invalidRange(size: number): S3Error {
  return new S3Error('InvalidRange', {
    fields: { ActualObjectSize: size },
    headers: { 'content-range': `bytes */${size}` },
  })
}
