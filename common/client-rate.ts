import { LRUCache } from 'lru-cache'
import { upTo } from './lru.js'
import { clientInNetwork, Quota, type QuotaBounds } from './quota.js'

export interface ClientRateBounds {
  /** Runs that a network may begin at once, and then per second. */
  readonly burst: number
  readonly perSecond: number
  /** Runs in progress, of all clients and of one network. */
  readonly concurrency: QuotaBounds
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
    this.#running = new Quota(bounds.concurrency)
    this.#begun = new TokenBuckets(bounds, clock)
  }

  /**
   * Runs the work. Throws the refusal, without running it, when the client does too much.
   * @param network of the client: see `networkOf`
   */
  async run<T>(network: string, work: () => Promise<T>): Promise<T> {
    const client = clientInNetwork(network)
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

/** How fast a client may take tokens. */
export interface Rate {
  readonly perSecond: number
  /** Most tokens that a client can have: what it may take at once after a pause. */
  readonly burst: number
}

/** Most clients that are counted. The one that was not seen for the longest time is forgotten, and begins anew. */
const MAX_CLIENTS = 10_000

interface Bucket {
  /** Negative while the client owes tokens. */
  tokens: number
  /** When `tokens` was right, by the monotonic clock, ms. */
  at: number
}

/**
 * A token bucket for each client (https://en.wikipedia.org/wiki/Token_bucket), for at most 10,000 clients. Clients may
 * owe tokens, because bytes are counted once they have passed; rate-limiter-flexible counts in windows, without debts.
 */
export class TokenBuckets {
  /** Takes effect at once when it is replaced. */
  rate: Rate
  readonly #clock: () => number
  readonly #buckets = new LRUCache<string, Bucket>(upTo(MAX_CLIENTS))

  /** @param clock monotonic, ms */
  constructor(rate: Rate, clock: () => number = () => performance.now()) {
    this.rate = rate
    this.#clock = clock
  }

  /** Seconds until the client has so many tokens; 0 if it has them now. Takes none. */
  wait(client: string, amount: number): number {
    const bucket = this.#buckets.peek(client)
    const missing = amount - (bucket ? this.#tokens(bucket) : this.rate.burst)
    return missing <= 0 ? 0 : missing / this.rate.perSecond
  }

  /** Takes tokens, also those that the client does not have: it owes them. A negative amount gives them back. */
  take(client: string, amount: number): void {
    const bucket = this.#buckets.get(client) ?? { tokens: this.rate.burst, at: this.#clock() }
    this.#buckets.set(client, { tokens: Math.min(this.rate.burst, this.#tokens(bucket) - amount), at: this.#clock() })
  }

  #tokens({ tokens, at }: Bucket): number {
    return Math.min(this.rate.burst, tokens + ((this.#clock() - at) / 1000) * this.rate.perSecond)
  }
}
