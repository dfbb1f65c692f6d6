import type { BodySink } from '../../http/body-sink.js'
import { HttpError } from '../../http/errors.js'

/** How slowly a body may arrive. */
export interface Pace {
  /** Time in which it may be slower than `bytesPerSecond`, ms. */
  readonly graceMs: number
  /** Least average after that time. The time in which the service itself is slow does not count. */
  readonly bytesPerSecond: number
}

/**
 * Passes a body on to a sink. It fails with HttpError 408 when the body arrives too slowly: a client that sends a byte
 * now and then would hold its place for ever.
 */
export function paced(sink: BodySink, { graceMs, bytesPerSecond }: Pace): BodySink {
  const begun = performance.now()
  let waited = 0
  let bytes = 0
  let refusal: HttpError | undefined
  return {
    write(chunk) {
      bytes += chunk.length
      const seconds = (performance.now() - begun - waited - graceMs) / 1000
      if (bytes >= seconds * bytesPerSecond) return sink.write(chunk)
      refusal = new HttpError(408, `The body arrives more slowly than ${bytesPerSecond} bytes per second.`)
      return false
    },
    async ready() {
      if (refusal !== undefined) throw refusal
      const from = performance.now()
      await sink.ready()
      waited += performance.now() - from
    },
  }
}
