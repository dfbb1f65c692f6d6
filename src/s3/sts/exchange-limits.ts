import { clientOf, Quota } from '../../common/quota.js'
import { stsError } from './sts-error.js'

/** Exchanges that a network may make at once, and then one per second. */
const BURST = 60
const PER_SECOND = 1
/** Exchanges in progress, of all clients and of one network. */
const AT_ONCE = { total: 32, perClient: 8 }
/** Most networks that are counted. */
const MOST = 10_000

interface Bucket {
  tokens: number
  /** When `tokens` was right, by the monotonic clock, ms. */
  at: number
}

/** Limits how often clients have a token of the platform exchanged, because each exchange is a call to the gateway. */
export class ExchangeLimits {
  readonly #clock: () => number
  readonly #running = new Quota(AT_ONCE)
  /** In the order of use. */
  readonly #buckets = new Map<string, Bucket>()

  /** @param clock monotonic, ms */
  constructor(clock: () => number) {
    this.#clock = clock
  }

  /** Runs an exchange. Throws Throttling, without running it, when the client makes too many. */
  async run<T>(remoteAddress: string, exchange: () => Promise<T>): Promise<T> {
    const client = clientOf('', remoteAddress)
    if (!this.#takeToken(client) || !this.#running.take(client, 1)) throw stsError('Throttling', 'Rate exceeded')
    try {
      return await exchange()
    } finally {
      this.#running.give(client, 1)
    }
  }

  #takeToken(client: string): boolean {
    const now = this.#clock()
    const { tokens, at } = this.#buckets.get(client) ?? { tokens: BURST, at: now }
    const left = Math.min(BURST, tokens + ((now - at) / 1000) * PER_SECOND)
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
