import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Logger } from '../log.js'
import { recordsFailed } from './errors.js'
import { LocalLocks } from './locks.js'
import type { Locks } from './state.js'

/** `name` covers exactly itself; `prefix` covers every name that begins with it. */
export type LeaseKind = 'name' | 'prefix'

export interface Lease {
  /** Leases conflict only within one scope. */
  readonly scope: string
  readonly kind: LeaseKind
  readonly name: string
  /** Only its holder knows it. */
  readonly token: string
}

/** Leases in a store that several proxies share. Each call is atomic there; time is the store's own clock. */
export interface LeaseStore {
  /** False when somebody holds a conflicting lease. */
  acquire(lease: Lease, ms: number): Promise<boolean>
  /** False when the lease has been lost. */
  renew(lease: Lease, ms: number): Promise<boolean>
  release(lease: Lease): Promise<void>
}

export interface LeaseLockOptions {
  readonly store: LeaseStore
  readonly log: Logger
  /** Milliseconds after which the lease of a proxy that died is free again. It is renewed three times as often. */
  readonly ms?: number
}

const LEASE_MS = 30_000
const FIRST_WAIT_MS = 10
const LONGEST_WAIT_MS = 250

/**
 * Locks among several proxies. Within this process they are first come first served, as LocalLocks; among processes whoever asks at the right moment
 * is next. A holder cut off from the store for longer than the lease may lose it while it works: that is logged, for nothing can undo its work.
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

  withKey<T>(bucket: string, key: string, run: () => Promise<T>): Promise<T> {
    return this.#local.withKey(bucket, key, () => this.#leased(`bucket/${bucket}`, 'name', key, run))
  }

  withSubtree<T>(bucket: string, prefix: string, run: () => Promise<T>): Promise<T> {
    return this.#local.withSubtree(bucket, prefix, () => this.#leased(`bucket/${bucket}`, 'prefix', prefix, run))
  }

  withName<T>(name: string, run: () => Promise<T>): Promise<T> {
    return this.#local.withName(name, () => this.#leased(`name/${name}`, 'name', name, run))
  }

  async #leased<T>(scope: string, kind: LeaseKind, name: string, run: () => Promise<T>): Promise<T> {
    const lease: Lease = { scope, kind, name, token: randomUUID() }
    await this.#acquire(lease)
    const renewal = setInterval(() => void this.#renew(lease), this.#ms / 3)
    renewal.unref()
    try {
      return await run()
    } finally {
      clearInterval(renewal)
      await this.#release(lease)
    }
  }

  async #acquire(lease: Lease): Promise<void> {
    let wait = FIRST_WAIT_MS
    for (;;) {
      try {
        if (await this.#store.acquire(lease, this.#ms)) return
      } catch (error) {
        // The lease may have been taken before the answer was lost.
        await this.#release(lease)
        throw recordsFailed(error)
      }
      // A random part keeps proxies that wait for one lease out of step.
      await sleep(wait * (0.5 + Math.random()))
      wait = Math.min(wait * 2, LONGEST_WAIT_MS)
    }
  }

  async #renew(lease: Lease): Promise<void> {
    try {
      if (await this.#store.renew(lease, this.#ms)) return
      this.#log.error({ scope: lease.scope }, 'a lock among proxies was lost while it was needed')
    } catch (error) {
      this.#log.warn({ err: error, scope: lease.scope }, 'a lock among proxies could not be renewed')
    }
  }

  /** A failure frees the lease later, when it runs out: no reason to fail what was done under it. */
  async #release(lease: Lease): Promise<void> {
    try {
      await this.#store.release(lease)
    } catch (error) {
      this.#log.warn({ err: error, scope: lease.scope }, 'a lock among proxies could not be released; it will run out')
    }
  }
}
