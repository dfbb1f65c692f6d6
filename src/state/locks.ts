import type { Locks } from './state.js'

interface Subtree {
  readonly prefix: string
  readonly done: Promise<void>
}

/**
 * Locks of one bucket (or of all names). Whoever comes waits for everyone conflicting who came before, and for nobody else: that is first come first
 * served, starves nobody, and cannot deadlock among locks taken one at a time.
 */
class Scope {
  /** The last one in line for each key. */
  readonly #keys = new Map<string, Promise<void>>()
  readonly #subtrees = new Set<Subtree>()

  get idle(): boolean {
    return this.#keys.size === 0 && this.#subtrees.size === 0
  }

  async key<T>(key: string, run: () => Promise<T>): Promise<T> {
    const earlier: Promise<void>[] = []
    const last = this.#keys.get(key)
    if (last) earlier.push(last)
    for (const subtree of this.#subtrees) if (key.startsWith(subtree.prefix)) earlier.push(subtree.done)
    const turn = gate()
    this.#keys.set(key, turn.opened)
    try {
      // An extra turn of the microtask queue would change the order in which equal claims start.
      if (earlier.length > 0) await Promise.all(earlier)
      return await run()
    } finally {
      if (this.#keys.get(key) === turn.opened) this.#keys.delete(key)
      turn.open()
    }
  }

  async subtree<T>(prefix: string, run: () => Promise<T>): Promise<T> {
    const earlier: Promise<void>[] = []
    for (const [key, last] of this.#keys) if (key.startsWith(prefix)) earlier.push(last)
    for (const other of this.#subtrees) if (overlap(prefix, other.prefix)) earlier.push(other.done)
    const turn = gate()
    const own: Subtree = { prefix, done: turn.opened }
    this.#subtrees.add(own)
    try {
      if (earlier.length > 0) await Promise.all(earlier)
      return await run()
    } finally {
      this.#subtrees.delete(own)
      turn.open()
    }
  }
}

/** Locks among the requests of this process. Not reentrant: taking a lock that covers one already held by the caller never returns. */
export class LocalLocks implements Locks {
  readonly #buckets = new Map<string, Scope>()
  readonly #names = new Scope()

  /** Buckets in which something is locked; 0 when nothing is. */
  get size(): number {
    return this.#buckets.size + (this.#names.idle ? 0 : 1)
  }

  withKey<T>(bucket: string, key: string, run: () => Promise<T>): Promise<T> {
    return this.#within(bucket, (scope) => scope.key(key, run))
  }

  withSubtree<T>(bucket: string, prefix: string, run: () => Promise<T>): Promise<T> {
    return this.#within(bucket, (scope) => scope.subtree(prefix, run))
  }

  withName<T>(name: string, run: () => Promise<T>): Promise<T> {
    return this.#names.key(name, run)
  }

  async #within<T>(bucket: string, take: (scope: Scope) => Promise<T>): Promise<T> {
    let scope = this.#buckets.get(bucket)
    if (!scope) {
      scope = new Scope()
      this.#buckets.set(bucket, scope)
    }
    try {
      return await take(scope)
    } finally {
      if (scope.idle && this.#buckets.get(bucket) === scope) this.#buckets.delete(bucket)
    }
  }
}

export function overlap(a: string, b: string): boolean {
  return a.startsWith(b) || b.startsWith(a)
}

function gate(): { opened: Promise<void>; open: () => void } {
  let open: () => void = () => undefined
  const opened = new Promise<void>((resolve) => {
    open = resolve
  })
  return { opened, open }
}
