import { receive } from '../../http/receive.js'
import { PlatformError } from '../errors.js'
import type { Exchange } from './exchange.js'

/** How much of a body is taken. */
export interface BodyBounds {
  /** Bytes. */
  readonly most: number
  /** Time from the first byte that is asked for to the last, ms; a body that stops arriving ends earlier. */
  readonly longestMs: number
}

/**
 * Receives the body of a request, chunk by chunk. Throws PlatformError: 408 when the body takes too long, 413 when it
 * is too large; ReceiveError when it stops arriving.
 * @param take returns the reason to receive no more, which is thrown
 */
export async function receiveBody(
  { context, request, body }: Pick<Exchange, 'context' | 'request' | 'body'>,
  { most, longestMs }: BodyBounds,
  take: (chunk: Buffer) => PlatformError | undefined,
): Promise<void> {
  const tooLarge = (): PlatformError => new PlatformError(413, `The body may have at most ${most} bytes.`)
  if (Number(request.headers['content-length'] ?? 0) > most) throw tooLarge()
  const { limits, monotonicMs } = context
  const begun = monotonicMs()
  let size = 0
  let refusal: PlatformError | undefined
  body.open()
  await receive(
    request,
    undefined,
    {
      write(chunk) {
        size += chunk.length
        // Each chunk asks for the time: one that does not arrive is a stall, which has a limit of its own.
        if (size > most) refusal = tooLarge()
        else if (monotonicMs() - begun >= longestMs) {
          refusal = new PlatformError(408, `The body took more than ${longestMs / 1000} s.`)
        } else refusal = take(chunk)
        return refusal === undefined
      },
      ready: () => Promise.reject(refusal),
    },
    limits.bodyIdleMs,
  )
}
