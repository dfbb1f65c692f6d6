import { FenceClock, overlap } from './locks.js'

interface Held {
  readonly lease: Lease
  /** By `performance.now()`. */
  readonly expires: number
  /** The process that asked. */
  readonly owner: number
}

interface Waiting extends Held {
  readonly since: number
}

/** The leases of one scope, and the first in line for each name and prefix. Keyed by kind and name. */
interface Scope {
  readonly held: Map<string, Held>
  readonly line: Map<string, Waiting>
}

/** Leases in the memory of the process that serves several others. They are as lasting as that process. */
export class MemoryLeases implements LeaseStore {
  readonly #scopes = new Map<string, Scope>()
  readonly #clock = new FenceClock()
  readonly #wake: (token: string) => void

  /** Number of scopes with leases or waiters. */
  get size(): number {
    return this.#scopes.size
  }

  /** @param wake tells that the lease is free for which this token waits */
  constructor(wake: (token: string) => void) {
    this.#wake = wake
  }

  async acquire(lease: Lease, ms: number, waitedMs = 0, owner = 0): Promise<number | undefined> {
    const now = performance.now()
    const since = now - waitedMs
    const scope = this.#scopeOf(lease)
    const id = idOf(lease)
    if (this.#conflict(scope, lease, now) || this.#ahead(scope, lease, since)) {
      const first = scope.line.get(id)
      const stays = first && first.expires > now && first.lease.token !== lease.token && first.since <= since
      if (!stays) scope.line.set(id, { lease, since, expires: now + WAITING_MS, owner })
      return undefined
    }
    scope.held.set(id, { lease, expires: now + ms, owner })
    this.#leave(scope, lease)
    return this.#clock.next()
  }

  async renew(lease: Lease, ms: number): Promise<number | undefined> {
    const scope = this.#scopes.get(lease.scope)
    const held = scope && heldOf(scope, lease)
    if (!held) return undefined
    scope.held.set(idOf(lease), { ...held, expires: performance.now() + ms })
    return this.#clock.next()
  }

  async yield(lease: Lease, ms: number): Promise<number | undefined> {
    const scope = this.#scopes.get(lease.scope)
    if (scope && heldOf(scope, lease) && this.#ahead(scope, lease, Number.POSITIVE_INFINITY)) {
      await this.release(lease)
      return undefined
    }
    return this.renew(lease, ms)
  }

  async release(lease: Lease): Promise<void> {
    const scope = this.#scopes.get(lease.scope)
    if (!scope) return
    this.#leave(scope, lease)
    if (heldOf(scope, lease)) {
      scope.held.delete(idOf(lease))
      const next = this.#ahead(scope, lease, Number.POSITIVE_INFINITY)
      if (next) this.#wake(next)
    }
    if (scope.held.size === 0 && scope.line.size === 0) this.#scopes.delete(lease.scope)
  }

  /** For a process that has died: its leases end after `ms` at the latest, and it waits for none. */
  abandon(owner: number, ms: number): void {
    const expires = performance.now() + ms
    for (const { held, line } of this.#scopes.values()) {
      for (const [id, each] of held)
        if (each.owner === owner && each.expires > expires) held.set(id, { ...each, expires })
      for (const [id, each] of line) if (each.owner === owner) line.delete(id)
    }
    // No one may ask for these scopes again.
    setTimeout(() => this.#clean(), ms + 1).unref()
  }

  #clean(): void {
    const now = performance.now()
    for (const [name, { held, line }] of this.#scopes) {
      for (const all of [held, line]) for (const [id, { expires }] of all) if (expires <= now) all.delete(id)
      if (held.size === 0 && line.size === 0) this.#scopes.delete(name)
    }
  }

  #scopeOf({ scope }: Lease): Scope {
    const known = this.#scopes.get(scope)
    if (known) return known
    const made = { held: new Map(), line: new Map() }
    this.#scopes.set(scope, made)
    return made
  }

  #conflict({ held }: Scope, lease: Lease, now: number): boolean {
    for (const [id, other] of held) {
      if (other.expires <= now) held.delete(id)
      else if (other.lease.name === lease.name || covers(other.lease, lease) || covers(lease, other.lease)) return true
    }
    return false
  }

  /** The token of another waiter that comes first. */
  #ahead({ line }: Scope, lease: Lease, before: number): string | undefined {
    const now = performance.now()
    let first: Waiting | undefined
    for (const [id, waiter] of line) {
      if (waiter.expires <= now) {
        line.delete(id)
        continue
      }
      const { kind, name, token } = waiter.lease
      const concerns =
        kind === lease.kind
          ? kind === 'name'
            ? name === lease.name
            : overlap(name, lease.name)
          : kind === 'prefix' && covers(waiter.lease, lease)
      if (concerns && token !== lease.token && waiter.since <= before && waiter.since <= (first?.since ?? before))
        first = waiter
    }
    return first?.lease.token
  }

  #leave({ line }: Scope, lease: Lease): void {
    if (line.get(idOf(lease))?.lease.token === lease.token) line.delete(idOf(lease))
  }
}

function idOf({ kind, name }: Lease): string {
  return `${kind}/${name}`
}

function heldOf({ held }: Scope, lease: Lease): Held | undefined {
  const found = held.get(idOf(lease))
  return found?.lease.token === lease.token && found.expires > performance.now() ? found : undefined
}

function covers(one: Lease, other: Lease): boolean {
  return one.kind === 'prefix' && other.name.startsWith(one.name)
}

/** `name` covers only itself; `prefix` covers every name that begins with it. */
type LeaseKind = 'name' | 'prefix'

export interface Lease {
  /** Leases conflict only within one scope. */
  readonly scope: string
  readonly kind: LeaseKind
  readonly name: string
  readonly token: string
}

/**
 * Leases in a store shared by several proxies. Each call is atomic; time is the store's clock.
 *
 * Who is refused waits in line: the store remembers the longest-waiting token for each name and for the prefixes of
 * each scope, for WAITING_MS after its last attempt, and refuses a free lease to all who wait for a shorter time. When
 * such a lease becomes free, it sends the signal `lease` with that token.
 */
export interface LeaseStore {
  /**
   * Resolves with the store's time, microseconds since 1970, or undefined when a conflicting lease is held or another
   * token is first in line.
   * @param waitedMs time since the first attempt with this token
   */
  acquire(lease: Lease, ms: number, waitedMs?: number): Promise<number | undefined>
  /** Extends a lease that is held. Undefined when it is lost. */
  renew(lease: Lease, ms: number): Promise<number | undefined>
  /** Like `renew`, if no one waits for the lease; otherwise like `release`, and resolves undefined. */
  yield(lease: Lease, ms: number): Promise<number | undefined>
  /** Releases a lease that is held, or leaves the line. May resolve before the store has done so. */
  release(lease: Lease): Promise<void>
}

/** Time for which a waiter that does not try again keeps its place in line, ms. */
export const WAITING_MS = 1000
