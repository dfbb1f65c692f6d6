import { createHash } from 'node:crypto'
import { LRUCache } from 'lru-cache'
import pLimit from 'p-limit'
import { upTo } from '../../common/lru.js'
import { DayTokens } from '../day-tokens.js'
import { type Failures, OwnFailures } from '../failure-table.js'
import { HttpError } from '../http/errors.js'
import type { ClientAddress } from '../http/server.js'
import type { ServicesLog } from '../log.js'
import type { PlatformTables } from './store.js'
import type { User } from './users.js'

export interface Caller {
  readonly user: User
  readonly by: 'sign-in' | 'api-key'
}

/** Failures before a delay applies: of one e-mail address from one address, of it from all, of all from one address. */
const FREE_OF_BOTH = 5
const FREE_OF_EMAIL = 20
const FREE_OF_ADDRESS = 50

/** Most pairs of an e-mail address and an address that are remembered from successful sign-ins. */
const MAX_KNOWN = 20_000

/** Most passwords checked at the same time, because a check takes 19 MiB; and most that wait for it. */
const MAX_CONCURRENCY = 2
const MAX_WAITING = 100

/**
 * Slows down clients that guess passwords. After some failures, further sign-ins are refused for a while without a
 * check of the password, even if it is right: otherwise the answer would confirm a guess. An attempt counts as a
 * failure from its beginning, so that many at the same time do not escape the count. A guesser elsewhere does not lock
 * the owner out: a program on this machine may sign in with the right password at any time, and an address from which
 * the owner has signed in does not wait for failures from others.
 *
 * Processes that share a database count together. Each remembers by itself who has signed in: at another one the owner
 * waits as others do.
 */
export class SignInAttempts {
  readonly #log: ServicesLog
  readonly #failures: Failures
  readonly #slots = pLimit(MAX_CONCURRENCY)
  /** Pairs that have signed in. */
  readonly #known = new LRUCache<string, true>(upTo(MAX_KNOWN))

  constructor(log: ServicesLog, failures: Failures = new OwnFailures(() => performance.now())) {
    this.#log = log
    this.#failures = failures
  }

  /**
   * Returns the result of `check`, or undefined when it is undefined: the password is wrong. Throws HttpError 429,
   * and 503 when too many sign in at the same time.
   */
  async attempt<T>(
    { network, local }: ClientAddress,
    email: string,
    check: () => Promise<T | undefined>,
  ): Promise<T | undefined> {
    // The digest bounds the memory per address to 32 bytes.
    const name = createHash('sha256').update(email.toLowerCase()).digest('base64')
    const pair = `${network} ${name}`
    const ofEmail = [
      { key: pair, free: FREE_OF_BOTH },
      { key: name, free: FREE_OF_EMAIL },
    ]
    const places = [...ofEmail, { key: network, free: FREE_OF_ADDRESS }]
    const waits = places.filter(({ key }) => key !== name || !this.#known.has(pair))
    const { waitMs, counts } = await this.#failures.begin(
      places,
      waits.map(({ key }) => key),
    )
    if (waitMs > 0 && !local) throw tooMany(waitMs)
    for (const [n, { free }] of places.entries()) if (counts[n] === free) this.#warn(network, free)
    const counted = waitMs > 0 ? [] : places.map(({ key }) => key)
    if (this.#slots.pendingCount >= MAX_WAITING) {
      await this.#failures.end(counted, [])
      throw busy()
    }
    const result = await this.#slots(check).catch(async (error: unknown) => {
      // Nothing was wrong with the password.
      await this.#failures.end(counted, [])
      throw error
    })
    if (result !== undefined) {
      this.#known.set(pair, true)
      const forgotten = ofEmail.map(({ key }) => key)
      await this.#failures.end(
        counted.filter((key) => !forgotten.includes(key)),
        forgotten,
      )
    } else if (waitMs > 0) throw tooMany(waitMs)
    return result
  }

  #warn(address: string, failures: number): void {
    this.#log.warn({ address, failures }, 'Several sign-ins with wrong passwords: delaying further ones.')
  }
}

function tooMany(waitMs: number): HttpError {
  const seconds = Math.ceil(waitMs / 1000)
  return new HttpError(429, `Too many sign-ins with wrong passwords. Try again in ${seconds} s.`, [
    'Retry-After',
    seconds,
  ])
}

function busy(): HttpError {
  return new HttpError(503, 'Too many sign-ins at the same time. Try again in 1 s.', ['Retry-After', 1])
}

/** Name of the setting with the key that signs the JWTs. */
export const TOKEN_KEY = 'token-key'

/**
 * The platform's JWTs, valid for a day. Clients that refresh one read its `exp`, and `sub`: the id of the user after a
 * sign-in, or the API key. They carry no `aud`, because clients that decode one without naming an audience refuse it.
 */
export class Tokens {
  readonly #tokens: DayTokens
  readonly #tables: Pick<PlatformTables, 'users' | 'apiKeys'>

  /** @param key 32 bytes or more */
  constructor(key: Uint8Array, tables: Pick<PlatformTables, 'users' | 'apiKeys'>) {
    this.#tokens = new DayTokens(key, 'platform')
    this.#tables = tables
  }

  /** It is valid until the password of the user changes. */
  ofSignIn({ id, passwordChanges }: User): Promise<string> {
    return this.#sign(String(id), 'sign-in', { pwc: passwordChanges })
  }

  ofApiKey(apikey: string): Promise<string> {
    return this.#sign(apikey, 'api-key')
  }

  /** Undefined unless the token is valid, its user and its API key still exist, and the password is still the same. */
  async callerOf(token: string): Promise<Caller | undefined> {
    const claims = await this.#tokens.read(token, unixSeconds())
    if (claims === undefined) return undefined
    const { sub, use, pwc = 0 } = claims
    if (use !== 'sign-in' && use !== 'api-key') return undefined
    const { users, apiKeys } = this.#tables
    const id = use === 'sign-in' ? Number(sub) : await apiKeys.userOf(sub)
    const user = id === undefined ? undefined : await users.get(id)
    if (user === undefined || (use === 'sign-in' && pwc !== user.passwordChanges)) return undefined
    return { user, by: use }
  }

  async #sign(subject: string, use: Caller['by'], claims = {}): Promise<string> {
    for (;;) {
      const token = await this.#tokens.sign(subject, unixSeconds(), { use, ...claims })
      // Clients take any reply to the issue of a JWT that has this word for a failure. Some 1 of 20,000 tokens does.
      if (!/fail/i.test(token)) return token
    }
  }
}

function unixSeconds(): number {
  return Math.floor(Date.now() / 1000)
}
