import { randomUUID } from 'node:crypto'
import { pauseAfter } from '../common/backoff.js'
import type { Logger, Logging } from '../common/log.js'
import type { HeldLock, LockOptions, Locks } from '../src/api/locks.js'
import type { Signals } from '../src/api/state.js'
import { busy, recordsFailed } from '../src/state/errors.js'
import { HeldLease } from '../src/state/locks/leased-lock.js'
import { LocalLocks } from '../src/state/locks/locks.js'
import type { Lease, LeaseStore } from '../src/state/locks/memory-leases.js'
import { noSignals } from '../src/state/signals.js'

interface LeaseLockOptions {
  readonly store: LeaseStore
  /** For the lines about locks that no request takes. */
  readonly log: Logger
  /** Tells which waiter may try again; without it, waiters try now and then. */
  readonly signals?: Signals
  /**
   * Length of the lease, ms: after the death of a proxy others get its locks once they expire. Renewed three times as
   * often. Default 30,000.
   */
  readonly ms?: number | undefined
}

const LEASE_MS = 30_000
/** Pauses between attempts to take a lease that another process has. */
const BACKOFF = { firstMs: 10, longestMs: 250 }

/**
 * Time for which holders in this process pass a lease on before others that wait for it get it, ms. With three proxies,
 * a process waits for twice this time and one write of each of the other two.
 */
const TURN_MS = 50

/** A lease that the last holder has passed on to the next one in this process, which has not begun yet. */
interface Passed {
  readonly held: HeldLease
  readonly unused: NodeJS.Immediate
}

type Wanted = Omit<Lease, 'token'>

/**
 * Locks among several proxies. Within this process they are granted first come first served, like LocalLocks, and under
 * one lease as long as no other process waits for it; among processes, to the one that waits longest. A holder that is
 * stopped or cut off from the store for longer than the lease loses it, and `HeldLock.ensure` throws from then on.
 */
export class LeaseLocks implements Locks {
  readonly #local = new LocalLocks()
  readonly #store: LeaseStore
  readonly #own: Logging
  readonly #ms: number
  /** Requests of this process that have not had their turn, by lease. */
  readonly #waiting = new Map<string, number>()
  readonly #passed = new Map<string, Passed>()
  /** Wakes up the request that waits for a lease, by its token. */
  readonly #wake = new Map<string, () => void>()

  constructor({ store, log, ms = LEASE_MS, signals = noSignals }: LeaseLockOptions) {
    this.#store = store
    this.#own = { log }
    this.#ms = ms
    signals.on('lease', (token) => this.#wake.get(token)?.())
  }

  withKey<T>(bucket: string, key: string, run: (lock: HeldLock) => Promise<T>, options: LockOptions = {}): Promise<T> {
    const wanted: Wanted = { scope: `bucket/${bucket}`, kind: 'name', name: key }
    return this.#leased(wanted, run, options, (leased) => this.#local.withKey(bucket, key, leased, options))
  }

  withSubtree<T>(
    bucket: string,
    prefix: string,
    run: (lock: HeldLock) => Promise<T>,
    options: LockOptions = {},
  ): Promise<T> {
    const wanted: Wanted = { scope: `bucket/${bucket}`, kind: 'prefix', name: prefix }
    return this.#leased(wanted, run, options, (leased) => this.#local.withSubtree(bucket, prefix, leased, options))
  }

  withName<T>(name: string, run: (lock: HeldLock) => Promise<T>, options: LockOptions = {}): Promise<T> {
    const wanted: Wanted = { scope: `name/${name}`, kind: 'name', name }
    return this.#leased(wanted, run, options, (leased) => this.#local.withName(name, leased, options))
  }

  /**
   * Runs under the local lock, and then under the lease. The time spent waiting for both counts towards the limit.
   * @param locally runs something under the local lock
   */
  async #leased<T>(
    wanted: Wanted,
    run: (lock: HeldLock) => Promise<T>,
    { waitMs, logger = this.#own }: LockOptions,
    locally: (leased: () => Promise<T>) => Promise<T>,
  ): Promise<T> {
    const until = waitMs === undefined ? Number.POSITIVE_INFINITY : performance.now() + waitMs
    const id = `${wanted.kind}/${wanted.scope}\0${wanted.name}`
    const come = this.#wait(id)
    try {
      return await locally(async () => {
        come()
        const held = this.#take(id) ?? (await this.#acquire({ ...wanted, token: randomUUID() }, until, logger))
        try {
          return await run(held.next(logger))
        } finally {
          await this.#pass(id, held)
        }
      })
    } finally {
      come()
    }
  }

  /** Counts a request that waits. The result, called once or more often, ends its wait. */
  #wait(id: string): () => void {
    let waits = true
    this.#waiting.set(id, (this.#waiting.get(id) ?? 0) + 1)
    return () => {
      if (!waits) return
      waits = false
      const left = (this.#waiting.get(id) ?? 0) - 1
      if (left > 0) this.#waiting.set(id, left)
      else this.#waiting.delete(id)
    }
  }

  /** The lease that was passed on. */
  #take(id: string): HeldLease | undefined {
    const passed = this.#passed.get(id)
    if (!passed) return undefined
    this.#passed.delete(id)
    clearImmediate(passed.unused)
    return passed.held
  }

  /**
   * Keeps the lease for the next holder in this process, or releases it. The next one begins at once when the local
   * lock is free; when another request is first, such as one for a subtree, it must not find this lease in its way.
   */
  async #pass(id: string, held: HeldLease): Promise<void> {
    if (this.#waiting.has(id) && (await held.passOn(TURN_MS))) {
      const unused = setImmediate(() => {
        this.#passed.delete(id)
        void this.#end(held)
      })
      this.#passed.set(id, { held, unused })
      return
    }
    await this.#end(held)
  }

  async #end(held: HeldLease): Promise<void> {
    held.end()
    if (held.isToRelease) await this.#release(held.lease, held.logger)
  }

  async #acquire(lease: Lease, until: number, logger: Logging): Promise<HeldLease> {
    const began = performance.now()
    let free = false
    let wake = () => {
      free = true
    }
    this.#wake.set(lease.token, () => wake())
    try {
      for (let attempt = 1; ; attempt++) {
        const asked = performance.now()
        const time = await this.#store.acquire(lease, this.#ms, asked - began)
        if (time !== undefined) {
          return new HeldLease({ lease, time, asked, ms: this.#ms, store: this.#store, logger })
        }
        if (performance.now() >= until) throw busy()
        if (!free) {
          // Jitter keeps proxies that wait for one lease from colliding repeatedly.
          await new Promise<void>((resolve) => {
            const timer = setTimeout(resolve, pauseAfter(attempt, BACKOFF) * (0.5 + Math.random()))
            wake = () => {
              clearTimeout(timer)
              resolve()
            }
          })
        }
        free = false
        wake = () => {
          free = true
        }
      }
    } catch (error) {
      // The lease may have been taken before the answer was lost, and a place in line must not keep others out.
      await this.#release(lease, logger)
      throw recordsFailed(error)
    } finally {
      this.#wake.delete(lease.token)
    }
  }

  /** A failed release must not fail the work done under the lease, which expires later. */
  async #release(lease: Lease, logger: Logging): Promise<void> {
    try {
      await this.#store.release(lease)
    } catch (error) {
      logger.log.warn({ err: error, scope: lease.scope }, 'could not release a lock among proxies; it will expire')
    }
  }
}
