import type { IncomingMessage } from 'node:http'
import type { ByteSink } from '../request/body.js'
import { timedOut, unavailable } from './errors.js'
import type { Download, GatewayObject } from './gateway.js'
import type { Span } from './range.js'

/** Up to so many bytes that nobody wants are read to keep the connection; for more a new connection is cheaper. */
const DRAIN_BYTES = 64 * 1024

export interface BodyPlan {
  readonly object: GatewayObject
  readonly span: Span
  /** Bytes of the response before `span.first`. */
  readonly skip: number
  /** Bytes of the response after `span.last`. */
  readonly surplus: number
  /** Without a byte while one is wanted, ms. */
  readonly idleMs: number
}

/** Exactly the bytes of a span out of a response that may hold more: never fewer without an error, never others. */
export class DownloadBody implements Download {
  readonly object: GatewayObject
  readonly first: number
  readonly last: number
  readonly #response: IncomingMessage | undefined
  readonly #plan: BodyPlan
  #consumed = false

  /** `response` may be absent when the span is empty. */
  constructor(response: IncomingMessage | undefined, plan: BodyPlan) {
    this.#response = response
    this.#plan = plan
    this.object = plan.object
    this.first = plan.span.first
    this.last = plan.span.last
  }

  consume(sink: ByteSink): Promise<void> {
    if (this.#consumed) return Promise.reject(new TypeError('a download can be consumed once'))
    this.#consumed = true
    const wanted = this.last - this.first + 1
    const response = this.#response
    if (!response || wanted === 0) {
      response?.resume()
      return Promise.resolve()
    }
    return relay(response, this.#plan, wanted, sink)
  }

  discard(): void {
    this.#response?.destroy()
  }
}

/** `data` events with pause and resume: half the cost per chunk of an async iterator. */
function relay(response: IncomingMessage, plan: BodyPlan, wanted: number, sink: ByteSink): Promise<void> {
  return new Promise((resolve, reject) => {
    let skip = plan.skip
    let left = wanted
    let settled = false
    let sinkIsBusy = false
    const timer = setTimeout(() => {
      // A slow client is not the gateway's fault.
      if (sinkIsBusy) timer.refresh()
      else fail(unavailable(timedOut('an object body')))
    }, plan.idleMs)

    const settle = () => {
      settled = true
      clearTimeout(timer)
      response.off('data', take)
      response.off('close', closed)
      response.off('error', failed)
    }
    const fail = (error: unknown) => {
      if (settled) return
      settle()
      response.destroy()
      reject(error)
    }
    const done = () => {
      if (settled) return
      settle()
      if (plan.surplus > DRAIN_BYTES) response.destroy()
      else response.resume()
      resolve()
    }
    const closed = () => {
      if (left > 0) fail(unavailable(cutShort(left)))
    }
    const failed = (error: Error) => fail(unavailable(error))
    const take = (received: Buffer) => {
      const chunk = cut(received, skip, left)
      skip -= Math.min(skip, received.length)
      timer.refresh()
      if (chunk.length === 0) return
      left -= chunk.length
      offer(chunk)
    }
    const offer = (chunk: Buffer) => {
      try {
        const waiting = sink(chunk)
        if (!waiting) return left === 0 ? done() : undefined
        response.pause()
        sinkIsBusy = true
        waiting.then(proceed, fail)
      } catch (error) {
        fail(error)
      }
    }
    const proceed = () => {
      if (settled) return
      if (left === 0) return done()
      sinkIsBusy = false
      timer.refresh()
      response.resume()
    }

    response.on('data', take)
    response.on('close', closed)
    response.on('error', failed)
    if (response.destroyed) closed()
  })
}

function cut(chunk: Buffer, skip: number, left: number): Buffer {
  if (skip === 0 && chunk.length <= left) return chunk
  return chunk.subarray(Math.min(skip, chunk.length), Math.min(chunk.length, skip + left))
}

function cutShort(left: number): Error {
  return Object.assign(new Error(`the object's body ended ${left} bytes early`), { code: 'ECONNRESET' })
}
