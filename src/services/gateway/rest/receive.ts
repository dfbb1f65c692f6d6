import type { IncomingMessage } from 'node:http'
import { GatewayError } from '../errors.js'

/** Where a body goes. */
export interface BodySink {
  /** Takes the chunk over; false: wait for `ready` before the next one. */
  write(chunk: Buffer): boolean
  ready(): Promise<void>
}

/**
 * Moves a request's body to the sink. Resolves when exactly `length` bytes have arrived, or all there are if that is undefined; throws GatewayError when the client ends early or sends nothing
 * for `idleMs`, and whatever the sink throws.
 */
export function receive(
  request: IncomingMessage,
  length: number | undefined,
  sink: BodySink,
  idleMs: number,
): Promise<void> {
  return new Promise((resolve, reject) => {
    let received = 0
    const timer = setTimeout(() => settle(new GatewayError('Stalled')), idleMs)
    const settle = (error?: unknown): void => {
      clearTimeout(timer)
      request.off('data', take).off('end', end).off('close', cut).off('error', cut)
      // The parser may still report what cut the request short.
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
      sink.ready().then(
        () => {
          timer.refresh()
          request.resume()
        },
        (error) => settle(error),
      )
    }
    const end = (): void =>
      settle(length === undefined || received === length ? undefined : new GatewayError('IncompleteBody'))
    const cut = (): void => settle(new GatewayError('IncompleteBody'))

    if (request.destroyed && !request.complete) return cut()
    request.on('data', take).on('end', end).on('close', cut).on('error', cut)
  })
}
