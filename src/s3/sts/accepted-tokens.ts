import { createHash } from 'node:crypto'
import { LRUCache } from 'lru-cache'
import { upTo } from '../../../common/lru.js'
import type { CacheUse } from '../../../common/metrics.js'
import type { GatewayAccount } from '../../api/identity.js'

/** Age from which an answer is renewed while it still counts, ms. */
const RENEW_MS = 25_000
/** Age at which an answer no longer counts, ms. With the time of a request, a revocation takes effect in a minute. */
const STALE_MS = 45_000
/** Most tokens whose answers are kept. */
const MAX_KNOWN = 10_000

interface TokenStanding {
  /** When the question was asked, by the monotonic clock, ms. */
  readonly asked: number
  /** Undefined: the token is refused. */
  readonly account: GatewayAccount | undefined
}

interface Entry {
  answer?: TokenStanding
  pending?: Promise<TokenStanding>
}

interface AcceptedTokensOptions {
  /** Asks the gateway for the key pair of the holder of a token; undefined when it refuses the token. */
  readonly ask: (token: string) => Promise<GatewayAccount | undefined>
  /** Monotonic clock, ms. */
  readonly clock: () => number
  /** Counts looks into the cache. */
  readonly use?: CacheUse | undefined
}

/** Remembers for a short time which tokens of the platform are accepted, and for which gateway account. */
export class AcceptedTokens {
  readonly #options: AcceptedTokensOptions
  /** Answers by the hash of the token. */
  readonly #entries = new LRUCache<string, Entry>(upTo(MAX_KNOWN))

  constructor(options: AcceptedTokensOptions) {
    this.#options = options
  }

  /**
   * The account of the holder of the token; undefined when the token is refused. Throws S3Error when the gateway does
   * not answer.
   */
  async accountOf(token: string): Promise<GatewayAccount | undefined> {
    const entry = this.#entryOf(token)
    const age = entry.answer ? this.#options.clock() - entry.answer.asked : Number.POSITIVE_INFINITY
    this.#options.use?.count(age < STALE_MS)
    if (entry.answer && age < STALE_MS) {
      if (age >= RENEW_MS) this.#ask(entry, token).catch(() => {})
      return entry.answer.account
    }
    return (await this.#ask(entry, token)).account
  }

  #ask(entry: Entry, token: string): Promise<TokenStanding> {
    entry.pending ??= this.#answer(token)
      .then((answer) => {
        entry.answer = answer
        return answer
      })
      .finally(() => {
        delete entry.pending
      })
    return entry.pending
  }

  async #answer(token: string): Promise<TokenStanding> {
    const asked = this.#options.clock()
    return { asked, account: await this.#options.ask(token) }
  }

  #entryOf(token: string): Entry {
    const name = createHash('sha256').update(token).digest('base64')
    const entry = this.#entries.get(name) ?? {}
    this.#entries.set(name, entry)
    return entry
  }
}
