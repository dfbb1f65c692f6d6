import { createHash } from 'node:crypto'
import pLimit from 'p-limit'
import { FailureCounts } from '../../failure-counts.js'
import type { ClientAddress } from '../../http/client-address.js'
import type { ServicesLog } from '../../log.js'
import { PlatformError } from '../errors.js'

/** Failures before a delay applies: of one e-mail address from one address, of it from all, of all from one address. */
const FREE_OF_BOTH = 5
const FREE_OF_EMAIL = 20
const FREE_OF_ADDRESS = 50

/** Most pairs of an e-mail address and an address that are remembered from successful sign-ins. */
const MOST_KNOWN = 20_000

/** Most passwords checked at the same time, because a check takes 19 MiB; and most that wait for it. */
const AT_ONCE = 2
const MOST_WAITING = 100

/**
 * Slows down clients that guess passwords. After some failures, further sign-ins are refused for a while without a
 * check of the password, even if it is right: otherwise the answer would confirm a guess. An attempt counts as a
 * failure from its beginning, so that many at the same time do not escape the count. A guesser elsewhere does not lock
 * the owner out: a program on this machine may sign in with the right password at any time, and an address from which
 * the owner has signed in does not wait for failures from others.
 */
export class SignInAttempts {
  readonly #log: ServicesLog
  readonly #failures: FailureCounts
  readonly #slots = pLimit(AT_ONCE)
  /** Pairs that have signed in, the latest last. */
  readonly #known = new Set<string>()

  /** @param now ms of a monotonic clock */
  constructor(log: ServicesLog, now: () => number = () => performance.now()) {
    this.#log = log
    this.#failures = new FailureCounts(now)
  }

  /**
   * Returns the result of `check`, or undefined when it is undefined: the password is wrong. Throws PlatformError 429,
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
    const waitMs = Math.max(...waits.map(({ key }) => this.#failures.waitOf(key)))
    if (waitMs > 0 && !local) throw tooMany(waitMs)
    if (this.#slots.pendingCount >= MOST_WAITING) throw busy()
    if (waitMs === 0) for (const { key, free } of places) this.#count(key, free, network)
    const result = await this.#slots(check)
    if (result !== undefined) {
      this.#remember(pair)
      for (const { key } of ofEmail) this.#failures.forget(key)
      if (waitMs === 0) this.#failures.takeBack(network)
    } else if (waitMs > 0) throw tooMany(waitMs)
    return result
  }

  #remember(pair: string): void {
    this.#known.delete(pair)
    this.#known.add(pair)
    const [oldest] = this.#known
    if (this.#known.size > MOST_KNOWN && oldest !== undefined) this.#known.delete(oldest)
  }

  #count(key: string, free: number, network: string): void {
    const failures = this.#failures.count(key, free)
    if (failures !== free) return
    this.#log.warn({ address: network, failures }, 'Several sign-ins with wrong passwords: delaying further ones.')
  }
}

function tooMany(waitMs: number): PlatformError {
  const seconds = Math.ceil(waitMs / 1000)
  return new PlatformError(429, `Too many sign-ins with wrong passwords. Try again in ${seconds} s.`, [
    'Retry-After',
    seconds,
  ])
}

function busy(): PlatformError {
  return new PlatformError(503, 'Too many sign-ins at the same time. Try again in 1 s.', ['Retry-After', 1])
}
