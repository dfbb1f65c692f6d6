import { clientOf, Quota, type QuotaBounds } from '../quota.js'
import { TokenBuckets } from './token-buckets.js'

export interface ClientRateBounds {
  /** Runs that a network may begin at once, and then per second. */
  readonly burst: number
  readonly perSecond: number
  /** Runs in progress, of all clients and of one network. */
  readonly atOnce: QuotaBounds
}

/** Limits how often clients without a signature cause work, by their network addresses. */
export class ClientRate {
  readonly #refusal: () => Error
  readonly #running: Quota
  readonly #begun: TokenBuckets

  /**
   * @param refusal makes the error for a client that does too much
   * @param clock monotonic, ms
   */
  constructor(bounds: ClientRateBounds, refusal: () => Error, clock: () => number = () => performance.now()) {
    this.#refusal = refusal
    this.#running = new Quota(bounds.atOnce)
    this.#begun = new TokenBuckets(bounds, clock)
  }

  /** Runs the work. Throws the refusal, without running it, when the client does too much. */
  async run<T>(remoteAddress: string, work: () => Promise<T>): Promise<T> {
    const client = clientOf('', remoteAddress)
    if (!this.#takeToken(client) || !this.#running.take(client, 1)) throw this.#refusal()
    try {
      return await work()
    } finally {
      this.#running.give(client, 1)
    }
  }

  #takeToken(client: string): boolean {
    const allowed = this.#begun.wait(client, 1) === 0
    if (allowed) this.#begun.take(client, 1)
    return allowed
  }
}
