import { S3Error } from '../../common/errors/s3-error.js'
import type { Limits } from '../../server/limits.js'

export type Patience = Pick<Limits, 'bodyIdleMs' | 'minBodyRate'>

/**
 * Enforces the minimum rate of a body. A client that occasionally sends a byte never reaches the idle timeout, and
 * could hold its connection forever. Only the time in which the server waits for the client counts, in periods of twice
 * `bodyIdleMs`: a client may pause up to the idle timeout and catch up.
 */
export class Pace {
  readonly #periodMs: number
  readonly #minBytes: number
  readonly #rate: number
  #waitedMs = 0
  #bytes = 0

  constructor({ bodyIdleMs, minBodyRate }: Patience) {
    this.#periodMs = 2 * bodyIdleMs
    this.#rate = minBodyRate
    this.#minBytes = (minBodyRate * this.#periodMs) / 1000
  }

  arrived(bytes: number): void {
    this.#bytes += bytes
  }

  waited(ms: number): void {
    this.#waitedMs += ms
  }

  /** Throws S3Error RequestTimeout at the end of a period in which too few bytes have arrived. */
  judge(): void {
    if (this.#waitedMs < this.#periodMs) return
    if (this.#bytes < this.#minBytes) {
      throw new S3Error('RequestTimeout', {
        message: `The body arrives more slowly than ${this.#rate} bytes per second.`,
      })
    }
    this.#waitedMs = 0
    this.#bytes = 0
  }
}
