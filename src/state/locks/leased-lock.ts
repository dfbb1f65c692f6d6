import type { Logger } from '../../common/log.js'
import { lockLost } from '../errors.js'
import type { HeldLock } from '../state.js'
import type { Lease, LeaseStore } from './lease-locks.js'

export interface LeasedLockOptions {
  readonly lease: Lease
  /** The store's time when it granted the lease, microseconds since 1970. */
  readonly time: number
  /** `performance.now()` before the store was asked. */
  readonly asked: number
  /** Length of the lease, ms. */
  readonly ms: number
  readonly store: LeaseStore
  readonly log: Logger
}

/** Fraction of the lease that is not used: clocks run at slightly different rates, and bytes take time to be sent. */
const MARGIN = 0.1

/**
 * A lease that this process holds and renews until `end`. Its expiry is measured by the local clock, from before the
 * store was asked, so that this process stops before the store lets others in.
 */
export class LeasedLock implements HeldLock {
  readonly lease: Lease
  readonly #options: LeasedLockOptions
  readonly #renewal: NodeJS.Timeout
  #fence: number
  /** By `performance.now()`, which continues while the process is stopped. */
  #until: number
  #lost = false
  #left = false

  constructor(options: LeasedLockOptions) {
    this.#options = options
    this.lease = options.lease
    this.#fence = options.time
    this.#until = this.#endOf(options.asked)
    this.#renewal = setInterval(() => void this.#renewInTime(), options.ms / 3)
    this.#renewal.unref()
  }

  get fence(): number {
    return this.#fence
  }

  ensure(): void {
    if (this.#lost || performance.now() >= this.#until) throw lockLost()
  }

  async raise(beyond: number): Promise<void> {
    const time = await this.#renew().catch((error: unknown) => {
      throw lockLost(error)
    })
    this.ensure()
    this.#fence = Math.max(this.#fence + 1, beyond + 1, time ?? 0)
  }

  /** True when the lease must expire by itself. */
  get left(): boolean {
    return this.#left
  }

  leave(): void {
    this.#left = true
  }

  /** Stops renewing. */
  end(): void {
    clearInterval(this.#renewal)
  }

  async #renewInTime(): Promise<void> {
    try {
      await this.#renew()
    } catch (error) {
      this.#options.log.warn({ err: error, scope: this.lease.scope }, 'could not renew a lock among proxies')
    }
  }

  async #renew(): Promise<number | undefined> {
    const { store, ms, log } = this.#options
    const asked = performance.now()
    const time = await store.renew(this.lease, ms)
    if (time !== undefined) this.#until = Math.max(this.#until, this.#endOf(asked))
    else if (!this.#lost) {
      this.#lost = true
      log.error({ scope: this.lease.scope }, 'lost a lock among proxies while it was held')
    }
    return time
  }

  #endOf(asked: number): number {
    return asked + this.#options.ms * (1 - MARGIN)
  }
}
