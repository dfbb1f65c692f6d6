import { createHash } from 'node:crypto'
import { MINUTE_MS } from '../../../common/durations.js'
import type { ServicesLog } from '../../log.js'
import { GatewayError } from '../errors.js'
import type { ClientAddress } from './client-address.js'

/** Failed log-ins before a delay applies: of one account from one address, and of all accounts from one address. */
const FREE_OF_ACCOUNT = 5
const FREE_OF_ADDRESS = 50
/** Delay after the first failed log-in that counts, doubled by every further one up to the maximum, ms. */
const FIRST_WAIT_MS = 1000
const LONGEST_WAIT_MS = MINUTE_MS
/** Failures are forgotten when no other follows for this long, ms. Longer than the longest delay. */
const FORGET_MS = 15 * MINUTE_MS
/** Most addresses and accounts remembered; the one with the oldest last failure is evicted first. */
const MAX_REMEMBERED = 20_000

interface Failures {
  count: number
  /** Time of the last failure, and time until which further log-ins are refused: ms of the monotonic clock. */
  last: number
  until: number
}

/**
 * Slows down clients that guess keys. After some failures, further log-ins are refused for a while without a check of
 * the keys, even if they are right: otherwise the answer would confirm a guess. A program on this machine may log in
 * with the right keys at any time, so that a guesser who shares the loopback address cannot lock out the proxy. A proxy
 * that forwards requests of clients names them in X-Forwarded-For, and each client is counted.
 */
export class LogInAttempts {
  readonly #log: ServicesLog
  readonly #now: () => number
  readonly #failures = new Map<string, Failures>()

  /** @param now ms of a monotonic clock */
  constructor(log: ServicesLog, now: () => number = () => performance.now()) {
    this.#log = log
    this.#now = now
  }

  /** Throws what `check` throws, or GatewayError TooManyLogIns. */
  attempt<T>({ network, local }: ClientAddress, account: string, check: () => T): T {
    // The digest bounds the memory per name to 32 bytes.
    const name = createHash('sha256').update(account).digest('base64')
    const ofAccount = { key: `${network} ${name}`, free: FREE_OF_ACCOUNT }
    const places = [{ key: network, free: FREE_OF_ADDRESS }, ofAccount]
    const waiting = places.some(({ key }) => (this.#known(key)?.until ?? 0) > this.#now())
    if (waiting && !local) throw new GatewayError('TooManyLogIns')
    let result: T
    try {
      result = check()
    } catch (error) {
      if (waiting) throw new GatewayError('TooManyLogIns')
      for (const { key, free } of places) this.#count(key, free, network)
      throw error
    }
    // The failures of the address stay: its client may have an account and guess the keys of others.
    this.#failures.delete(ofAccount.key)
    return result
  }

  #known(key: string): Failures | undefined {
    const failures = this.#failures.get(key)
    if (failures === undefined || this.#now() - failures.last <= FORGET_MS) return failures
    this.#failures.delete(key)
    return undefined
  }

  #count(key: string, free: number, network: string): void {
    const now = this.#now()
    const count = (this.#known(key)?.count ?? 0) + 1
    const doublings = Math.min(count - free, 30)
    const wait = doublings < 0 ? 0 : Math.min(FIRST_WAIT_MS * 2 ** doublings, LONGEST_WAIT_MS)
    // Insert at the end: the map is in the order of the last failure.
    this.#failures.delete(key)
    this.#failures.set(key, { count, last: now, until: now + wait })
    const oldest = this.#failures.keys().next().value
    if (this.#failures.size > MAX_REMEMBERED && oldest !== undefined) this.#failures.delete(oldest)
    if (count === free) {
      this.#log.warn(
        { address: network, failures: count },
        'Several log-ins with wrong keys: delaying further log-ins.',
      )
    }
  }
}
