import { clientOf, Quota, type QuotaBounds } from '../quota.js'

export interface ClientRateBounds {
  /** Runs that a network may begin at once, and then per second. */
  readonly burst: number
  readonly perSecond: number
  /** Runs in progress, of all clients and of one network. */
  readonly atOnce: QuotaBounds
}

/** Most networks that are counted. */
const MOST = 10_000

interface Bucket {
  tokens: number
  /** When `tokens` was right, by the monotonic clock, ms. */
  at: number
}

/** Limits how often clients without a signature cause work, by their network addresses. */
export class ClientRate {
  readonly #bounds: ClientRateBounds
  readonly #refusal: () => Error
  readonly #clock: () => number
  readonly #running: Quota
  /** In the order of use. */
  readonly #buckets = new Map<string, Bucket>()

  /**
   * @param refusal makes the error for a client that does too much
   * @param clock monotonic, ms
   */
  constructor(bounds: ClientRateBounds, refusal: () => Error, clock: () => number = () => performance.now()) {
    this.#bounds = bounds
    this.#refusal = refusal
    this.#clock = clock
    this.#running = new Quota(bounds.atOnce)
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
    const { burst, perSecond } = this.#bounds
    const now = this.#clock()
    const { tokens, at } = this.#buckets.get(client) ?? { tokens: burst, at: now }
    const left = Math.min(burst, tokens + ((now - at) / 1000) * perSecond)
    const allowed = left >= 1
    this.#buckets.delete(client)
    this.#buckets.set(client, { tokens: allowed ? left - 1 : left, at: now })
    if (this.#buckets.size > MOST) {
      const [oldest] = this.#buckets.keys()
      if (oldest !== undefined) this.#buckets.delete(oldest)
    }
    return allowed
  }
}
