import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Logger } from '../../common/log.js'
import { busy, recordsFailed } from '../errors.js'
import type { HeldLock, Locks, WaitLimit } from '../state.js'
import { LeasedLock } from './leased-lock.js'
import { LocalLocks } from './locks.js'

/** `name` covers only itself; `prefix` covers every name that begins with it. */
export type LeaseKind = 'name' | 'prefix'

export interface Lease {
  /** Leases conflict only within one scope. */
  readonly scope: string
  readonly kind: LeaseKind
  readonly name: string
  /** Known only to the holder. */
  readonly token: string
}

/** Leases in a store shared by several proxies. Each call is atomic; time is the store's clock. */
export interface LeaseStore {
  /** Resolves with the store's time, microseconds since 1970, or undefined when a conflicting lease is held. */
  acquire(lease: Lease, ms: number): Promise<number | undefined>
  /** Like acquire; undefined when the lease is lost. */
  renew(lease: Lease, ms: number): Promise<number | undefined>
  release(lease: Lease): Promise<void>
}

export interface LeaseLockOptions {
  readonly store: LeaseStore
  readonly log: Logger
  /**
   * Length of the lease, ms: after the death of a proxy others get its locks once they expire. Renewed three times as
   * often. Default 30,000.
   */
  readonly ms?: number | undefined
}

const LEASE_MS = 30_000
const FIRST_WAIT_MS = 10
const LONGEST_WAIT_MS = 250

/**
 * Locks among several proxies. Within this process they are granted first come first served, like LocalLocks; among
 * processes, in no order. A holder that is stopped or cut off from the store for longer than the lease loses it, and
 * `HeldLock.ensure` throws from then on.
 */
export class LeaseLocks implements Locks {
  readonly #local = new LocalLocks()
  readonly #store: LeaseStore
  readonly #log: Logger
  readonly #ms: number

  constructor(options: LeaseLockOptions) {
    this.#store = options.store
    this.#log = options.log
    this.#ms = options.ms ?? LEASE_MS
  }

  withKey<T>(bucket: string, key: string, run: (lock: HeldLock) => Promise<T>, limit: WaitLimit = {}): Promise<T> {
    const leased = this.#leased(`bucket/${bucket}`, 'name', key, run, limit)
    return this.#local.withKey(bucket, key, leased, limit)
  }

  withSubtree<T>(
    bucket: string,
    prefix: string,
    run: (lock: HeldLock) => Promise<T>,
    limit: WaitLimit = {},
  ): Promise<T> {
    const leased = this.#leased(`bucket/${bucket}`, 'prefix', prefix, run, limit)
    return this.#local.withSubtree(bucket, prefix, leased, limit)
  }

  withName<T>(name: string, run: (lock: HeldLock) => Promise<T>, limit: WaitLimit = {}): Promise<T> {
    return this.#local.withName(name, this.#leased(`name/${name}`, 'name', name, run, limit), limit)
  }

  /** Runs under the local lock. The time spent waiting for that lock counts towards the limit. */
  #leased<T>(
    scope: string,
    kind: LeaseKind,
    name: string,
    run: (lock: HeldLock) => Promise<T>,
    { waitMs }: WaitLimit,
  ): () => Promise<T> {
    const until = waitMs === undefined ? Number.POSITIVE_INFINITY : performance.now() + waitMs
    return async () => {
      const lock = await this.#acquire({ scope, kind, name, token: randomUUID() }, until)
      try {
        return await run(lock)
      } finally {
        lock.end()
        if (!lock.left) await this.#release(lock.lease)
      }
    }
  }

  async #acquire(lease: Lease, until: number): Promise<LeasedLock> {
    let wait = FIRST_WAIT_MS
    for (;;) {
      try {
        const asked = performance.now()
        const time = await this.#store.acquire(lease, this.#ms)
        if (time !== undefined) {
          return new LeasedLock({ lease, time, asked, ms: this.#ms, store: this.#store, log: this.#log })
        }
      } catch (error) {
        // The lease may have been taken before the answer was lost.
        await this.#release(lease)
        throw recordsFailed(error)
      }
      if (performance.now() >= until) throw busy()
      // Jitter keeps proxies that wait for one lease from colliding repeatedly.
      await sleep(wait * (0.5 + Math.random()))
      wait = Math.min(wait * 2, LONGEST_WAIT_MS)
    }
  }

  /** A failed release must not fail the work done under the lease, which expires later. */
  async #release(lease: Lease): Promise<void> {
    try {
      await this.#store.release(lease)
    } catch (error) {
      this.#log.warn({ err: error, scope: lease.scope }, 'could not release a lock among proxies; it will expire')
    }
  }
}
