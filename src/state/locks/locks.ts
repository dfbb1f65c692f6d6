import { withinDeadline } from '../../../common/time.js'
import type { HeldLock, LockOptions, Locks, WaitLimit } from '../../api/locks.js'
import { busy } from '../errors.js'

export function isHeld(lock: HeldLock): boolean {
  try {
    lock.ensure()
    return true
  } catch {
    return false
  }
}

interface Subtree {
  readonly prefix: string
  readonly done: Promise<void>
}

/**
 * Locks of one bucket, or of all names. Each request waits for all conflicting requests that came before it, and for no
 * other. This is first come first served, starves no request, and cannot deadlock among locks taken one at a time.
 */
class Scope {
  /** The last request for each key. */
  readonly #keys = new Map<string, Promise<void>>()
  readonly #subtrees = new Set<Subtree>()
  readonly #onIdle: () => void

  constructor(onIdle: () => void) {
    this.#onIdle = onIdle
  }

  get idle(): boolean {
    return this.#keys.size === 0 && this.#subtrees.size === 0
  }

  key<T>(key: string, run: () => Promise<T>, limit: WaitLimit): Promise<T> {
    const earlier: Promise<void>[] = []
    const last = this.#keys.get(key)
    if (last) earlier.push(last)
    for (const subtree of this.#subtrees) if (key.startsWith(subtree.prefix)) earlier.push(subtree.done)
    const turn = gate()
    this.#keys.set(key, turn.opened)
    return this.#inTurn(earlier, limit, run, () => {
      if (this.#keys.get(key) === turn.opened) this.#keys.delete(key)
      turn.open()
    })
  }

  subtree<T>(prefix: string, run: () => Promise<T>, limit: WaitLimit): Promise<T> {
    const earlier: Promise<void>[] = []
    for (const [key, last] of this.#keys) if (key.startsWith(prefix)) earlier.push(last)
    for (const other of this.#subtrees) if (overlap(prefix, other.prefix)) earlier.push(other.done)
    const turn = gate()
    const own: Subtree = { prefix, done: turn.opened }
    this.#subtrees.add(own)
    const leave = () => {
      this.#subtrees.delete(own)
      turn.open()
    }
    return this.#inTurn(earlier, limit, run, leave, (_, end) => end())
  }

  /**
   * A request for a key that times out keeps its place until its turn: later requests for that key wait for it alone. A
   * request for a subtree leaves at once, because each later request also waits for all others that it conflicts with,
   * and free keys below the subtree must not wait for a locked one.
   * @param giveUp ends the request, at once or when its turn comes
   */
  async #inTurn<T>(
    earlier: readonly Promise<void>[],
    { waitMs }: WaitLimit,
    run: () => Promise<T>,
    leave: () => void,
    giveUp: (come: Promise<unknown>, end: () => void) => void = (come, end) => void come.then(end),
  ): Promise<T> {
    const end = () => {
      leave()
      if (this.idle) this.#onIdle()
    }
    // An extra turn of the microtask queue would change the order in which equal requests start.
    if (earlier.length > 0) {
      const come = Promise.all(earlier)
      try {
        if (waitMs === undefined) await come
        else await withinDeadline(come, waitMs, busy)
      } catch (error) {
        giveUp(come, end)
        throw error
      }
    }
    try {
      return await run()
    } finally {
      end()
    }
  }
}

/**
 * Locks among the requests of this process. Not reentrant: taking a lock that covers one already held by the caller
 * never resolves.
 */
export class LocalLocks implements Locks {
  readonly #buckets = new Map<string, Scope>()
  readonly #names = new Scope(() => {})
  readonly #clock = new FenceClock()

  /** Number of buckets with locks; 0 when nothing is locked. */
  get size(): number {
    return this.#buckets.size + (this.#names.idle ? 0 : 1)
  }

  withKey<T>(bucket: string, key: string, run: (lock: HeldLock) => Promise<T>, options: LockOptions = {}): Promise<T> {
    return this.#scope(bucket).key(key, () => run(new LocalLock(this.#clock)), options)
  }

  withSubtree<T>(
    bucket: string,
    prefix: string,
    run: (lock: HeldLock) => Promise<T>,
    options: LockOptions = {},
  ): Promise<T> {
    return this.#scope(bucket).subtree(prefix, () => run(new LocalLock(this.#clock)), options)
  }

  withName<T>(name: string, run: (lock: HeldLock) => Promise<T>, options: LockOptions = {}): Promise<T> {
    return this.#names.key(name, () => run(new LocalLock(this.#clock)), options)
  }

  #scope(bucket: string): Scope {
    const known = this.#buckets.get(bucket)
    if (known) return known
    const scope = new Scope(() => {
      if (this.#buckets.get(bucket) === scope) this.#buckets.delete(bucket)
    })
    this.#buckets.set(bucket, scope)
    return scope
  }
}

function overlap(a: string, b: string): boolean {
  return a.startsWith(b) || b.startsWith(a)
}

function gate(): { opened: Promise<void>; open: () => void } {
  let open: () => void = () => undefined
  const opened = new Promise<void>((resolve) => {
    open = resolve
  })
  return { opened, open }
}

/**
 * Issues fences for writes: microseconds since 1970, each higher than the last, also when the system clock is set back.
 */
export class FenceClock {
  #last = 0

  next(): number {
    this.#last = Math.max(this.#last + 1, Date.now() * 1000)
    return this.#last
  }
}

/** A lock that no other process can take. Lasts until it is released. */
class LocalLock implements HeldLock {
  readonly #clock: FenceClock
  #fence: number | undefined

  constructor(clock: FenceClock) {
    this.#clock = clock
  }

  get fence(): number {
    this.#fence ??= this.#clock.next()
    return this.#fence
  }

  ensure(): void {}

  leave(): void {}

  /**
   * Does not change the clock: a high fence on one key, whether by mistake or by intent of another client, must not
   * raise the fences of all other keys. An earlier write of this key with an unknown outcome has at most `beyond + 1`,
   * and the gateway accepts only one write with that fence.
   */
  async raise(beyond: number): Promise<void> {
    this.#fence = Math.max(this.#clock.next(), beyond + 1)
  }
}
