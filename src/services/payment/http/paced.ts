import type { BodySink } from '../../http/receive.js'
import { PaymentError } from '../errors.js'

/** How slowly a body may arrive. */
export interface Pace {
  /** Time in which it may be slower than `bytesPerSecond`, ms. */
  readonly graceMs: number
  /** Least average after that time. The time in which the service itself is slow does not count. */
  readonly bytesPerSecond: number
}

/**
 * Passes a body on to a sink. It fails with PaymentError `late` when the body arrives too slowly: a client that sends a
 * byte now and then would hold its place for ever.
 * @param now ms of a monotonic clock
 */
export function paced(sink: BodySink, { graceMs, bytesPerSecond }: Pace, now = () => performance.now()): BodySink {
  const begun = now()
  let waited = 0
  let bytes = 0
  let refusal: PaymentError | undefined
  return {
    write(chunk) {
      bytes += chunk.length
      const seconds = (now() - begun - waited - graceMs) / 1000
      if (bytes >= seconds * bytesPerSecond) return sink.write(chunk)
      refusal = new PaymentError('late', `the body arrives more slowly than ${bytesPerSecond} bytes per second`)
      return false
    },
    async ready() {
      if (refusal !== undefined) throw refusal
      const from = now()
      await sink.ready()
      waited += now() - from
    },
  }
}
