import type { Logging } from '../../../common/log.js'
import type { HeldLock } from '../../api/locks.js'
import { lockLost } from '../errors.js'
import type { Lease, LeaseStore } from './memory-leases.js'

interface HeldLeaseOptions {
  readonly lease: Lease
  /** The store's time when it granted the lease, microseconds since 1970. */
  readonly time: number
  /** `performance.now()` before the store was asked. */
  readonly asked: number
  /** Length of the lease, ms. */
  readonly ms: number
  readonly store: LeaseStore
  /** The first holder. */
  readonly logger: Logging
}

/** Fraction of the lease that is not used: clocks run at slightly different rates, and bytes take time to be sent. */
const MARGIN = 0.1

/**
 * A lease that this process holds and renews until `end`, for one lock after the other. Its expiry is measured by the
 * local clock, from before the store was asked, so that this process stops before the store lets others in.
 */
export class HeldLease {
  readonly lease: Lease
  readonly #options: HeldLeaseOptions
  readonly #renewal: NodeJS.Timeout
  /** The last holder, whose log gets the lines about the lease. */
  logger: Logging
  #fence: number
  /** End of the lease by `performance.now()`, which continues while the process is stopped. */
  #until: number
  /** When the lease was granted, or was last not wanted by others, by `performance.now()`. */
  #alone: number
  #lost = false
  #left = false
  #released = false
  #ended = false

  constructor(options: HeldLeaseOptions) {
    this.#options = options
    this.lease = options.lease
    this.logger = options.logger
    this.#fence = options.time - 1
    this.#until = this.#endOf(options.asked)
    this.#alone = options.asked
    this.#renewal = setInterval(() => void this.#renewInTime(), options.ms / 3)
    this.#renewal.unref()
  }

  /**
   * The lock for the next holder in this process. Its fence is the store's time when the lease was granted, plus one
   * for each holder: it stays below the store's time at the next grant, because a holder takes more than a microsecond.
   */
  next(logger: Logging): LeasedLock {
    this.logger = logger
    this.#fence++
    return new LeasedLock(this, this.#fence)
  }

  /** The lowest fence above all that holders had, and above `least`. */
  fenceAbove(least: number): number {
    this.#fence = Math.max(this.#fence + 1, least)
    return this.#fence
  }

  ensure(): void {
    if (!this.#valid) throw lockLost()
  }

  /** Renews now, and throws S3Error ServiceUnavailable unless the lease is still held. The store's time. */
  async confirm(): Promise<number> {
    const time = await this.#renew().catch((error: unknown) => {
      throw lockLost(error)
    })
    this.ensure()
    return time ?? 0
  }

  /**
   * True when the next holder in this process may have the lock. Asks the store from time to time whether another
   * process waits, and if one does, releases the lease and resolves false. False, too, for a lease that is lost.
   */
  async passOn(turnMs: number): Promise<boolean> {
    if (this.#left || !this.#valid) return false
    if (performance.now() - this.#alone < turnMs) return true
    const { store, ms } = this.#options
    const asked = performance.now()
    this.#ended = true
    try {
      if ((await store.yield(this.lease, ms)) === undefined) {
        this.#released = true
        return false
      }
    } catch (err) {
      this.logger.log.debug({ err, scope: this.lease.scope }, 'could not ask who waits for a lock among proxies')
      return false
    }
    this.#ended = false
    this.#until = Math.max(this.#until, this.#endOf(asked))
    this.#alone = asked
    return true
  }

  /** False when the lease must expire by itself, and when the store has released it. */
  get isToRelease(): boolean {
    return !this.#left && !this.#released
  }

  leave(): void {
    this.#left = true
  }

  end(): void {
    this.#ended = true
    clearInterval(this.#renewal)
  }

  get #valid(): boolean {
    return !this.#lost && performance.now() < this.#until
  }

  async #renewInTime(): Promise<void> {
    try {
      await this.#renew()
    } catch (error) {
      this.logger.log.warn({ err: error, scope: this.lease.scope }, 'could not renew a lock among proxies')
    }
  }

  async #renew(): Promise<number | undefined> {
    const { store, ms } = this.#options
    const asked = performance.now()
    const time = await store.renew(this.lease, ms)
    if (time !== undefined) this.#until = Math.max(this.#until, this.#endOf(asked))
    else if (!this.#lost && !this.#ended) {
      this.#lost = true
      this.logger.log.error({ scope: this.lease.scope }, 'lost a lock among proxies while it was held')
    }
    return time
  }

  #endOf(asked: number): number {
    return asked + this.#options.ms * (1 - MARGIN)
  }
}

/** The lock of one holder, under a lease. */
class LeasedLock implements HeldLock {
  readonly held: HeldLease
  #fence: number

  constructor(held: HeldLease, fence: number) {
    this.held = held
    this.#fence = fence
  }

  get fence(): number {
    return this.#fence
  }

  ensure(): void {
    this.held.ensure()
  }

  async raise(beyond: number): Promise<void> {
    const time = await this.held.confirm()
    this.#fence = this.held.fenceAbove(Math.max(beyond + 1, time))
  }

  leave(): void {
    this.held.leave()
  }
}
