import { createHash } from 'node:crypto'
import { FailureCounts } from '../../failure-counts.js'
import type { ClientAddress } from '../../http/client-address.js'
import type { ServicesLog } from '../../log.js'
import { GatewayError } from '../errors.js'

/** Failed log-ins before a delay applies: of one account from one address, and of all accounts from one address. */
const FREE_OF_ACCOUNT = 5
const FREE_OF_ADDRESS = 50

/**
 * Slows down clients that guess keys. After some failures, further log-ins are refused for a while without a check of
 * the keys, even if they are right: otherwise the answer would confirm a guess. A program on this machine may log in
 * with the right keys at any time, so that a guesser who shares the loopback address cannot lock out the proxy. A proxy
 * that forwards requests of clients names them in X-Forwarded-For, and each client is counted.
 */
export class LogInAttempts {
  readonly #log: ServicesLog
  readonly #failures: FailureCounts

  /** @param now ms of a monotonic clock */
  constructor(log: ServicesLog, now: () => number = () => performance.now()) {
    this.#log = log
    this.#failures = new FailureCounts(now)
  }

  /** Throws what `check` throws, or GatewayError TooManyLogIns. */
  attempt<T>({ network, local }: ClientAddress, account: string, check: () => T): T {
    // The digest bounds the memory per name to 32 bytes.
    const name = createHash('sha256').update(account).digest('base64')
    const ofAccount = { key: `${network} ${name}`, free: FREE_OF_ACCOUNT }
    const places = [{ key: network, free: FREE_OF_ADDRESS }, ofAccount]
    const waiting = places.some(({ key }) => this.#failures.waitOf(key) > 0)
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
    this.#failures.forget(ofAccount.key)
    return result
  }

  #count(key: string, free: number, network: string): void {
    const failures = this.#failures.count(key, free)
    if (failures !== free) return
    this.#log.warn({ address: network, failures }, 'Several log-ins with wrong keys: delaying further log-ins.')
  }
}
