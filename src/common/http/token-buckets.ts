/** How fast a client may take tokens. */
export interface Rate {
  readonly perSecond: number
  /** Most tokens that a client can have: what it may take at once after a pause. */
  readonly burst: number
}

/** Most clients that are counted. The one that was not seen for the longest time is forgotten, and begins anew. */
const MOST = 10_000

interface Bucket {
  /** Negative while the client owes tokens. */
  tokens: number
  /** When `tokens` was right, by the monotonic clock, ms. */
  at: number
}

/** A token bucket for each client (https://en.wikipedia.org/wiki/Token_bucket), for at most 10,000 clients. */
export class TokenBuckets {
  /** Takes effect at once when it is replaced. */
  rate: Rate
  readonly #clock: () => number
  /** In the order of use. */
  readonly #buckets = new Map<string, Bucket>()

  /** @param clock monotonic, ms */
  constructor(rate: Rate, clock: () => number = () => performance.now()) {
    this.rate = rate
    this.#clock = clock
  }

  /** Seconds until the client has so many tokens; 0 if it has them now. Takes none. */
  wait(client: string, amount: number): number {
    const bucket = this.#buckets.get(client)
    const missing = amount - (bucket ? this.#tokens(bucket) : this.rate.burst)
    return missing <= 0 ? 0 : missing / this.rate.perSecond
  }

  /** Takes tokens, also those that the client does not have: it owes them. A negative amount gives them back. */
  take(client: string, amount: number): void {
    const bucket = this.#buckets.get(client) ?? { tokens: this.rate.burst, at: this.#clock() }
    this.#buckets.delete(client)
    this.#buckets.set(client, { tokens: Math.min(this.rate.burst, this.#tokens(bucket) - amount), at: this.#clock() })
    if (this.#buckets.size <= MOST) return
    const [oldest] = this.#buckets.keys()
    if (oldest !== undefined) this.#buckets.delete(oldest)
  }

  #tokens({ tokens, at }: Bucket): number {
    return Math.min(this.rate.burst, tokens + ((this.#clock() - at) / 1000) * this.rate.perSecond)
  }
}
