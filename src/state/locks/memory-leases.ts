import { FenceClock } from './locks.js'

interface HeldLease {
  readonly lease: Lease
  /** End of the lease by `performance.now()`, ms. */
  readonly expires: number
  /** The process that asked. */
  readonly owner: number
}

interface Waiting extends HeldLease {
  readonly since: number
}

/**
 * Leases by name. The two kinds are apart because a lease of a name meets one other of its kind, and of prefixes there
 * are few.
 */
type Entries<T> = Readonly<Record<LeaseKind, Map<string, T>>>

/** The leases of one scope, and the first in line for each name and prefix. */
interface Scope {
  readonly held: Entries<HeldLease>
  readonly line: Entries<Waiting>
  /** Calls until those that have expired are looked for. */
  untilClean: number
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
    const { kind, name } = lease
    if (scope.untilClean-- === 0) clean(scope, now)
    if (inTheWay(scope.held, lease).some(({ expires }) => expires > now) || this.#ahead(scope, lease, since)) {
      const first = scope.line[kind].get(name)
      const stays = first && first.expires > now && first.lease.token !== lease.token && first.since <= since
      if (!stays) scope.line[kind].set(name, { lease, since, expires: now + WAITING_MS, owner })
      return undefined
    }
    scope.held[kind].set(name, { lease, expires: now + ms, owner })
    this.#leave(scope, lease)
    return this.#clock.next()
  }

  async renew(lease: Lease, ms: number): Promise<number | undefined> {
    const scope = this.#scopes.get(lease.scope)
    const held = scope && heldOf(scope, lease)
    if (!held) return undefined
    scope.held[lease.kind].set(lease.name, { ...held, expires: performance.now() + ms })
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
      scope.held[lease.kind].delete(lease.name)
      const next = this.#ahead(scope, lease, Number.POSITIVE_INFINITY)
      if (next) this.#wake(next)
    }
    if (isEmpty(scope)) this.#scopes.delete(lease.scope)
  }

  /** For a process that has died: its leases end after `ms` at the latest, and it waits for none. */
  abandon(owner: number, ms: number): void {
    const expires = performance.now() + ms
    for (const { held, line } of this.#scopes.values()) {
      for (const all of Object.values(held))
        for (const [name, each] of all)
          if (each.owner === owner && each.expires > expires) all.set(name, { ...each, expires })
      for (const all of Object.values(line)) for (const [name, each] of all) if (each.owner === owner) all.delete(name)
    }
    // No one may ask for these scopes again.
    setTimeout(() => this.#clean(), ms + 1).unref()
  }

  #clean(): void {
    const now = performance.now()
    for (const [name, scope] of this.#scopes) {
      clean(scope, now)
      if (isEmpty(scope)) this.#scopes.delete(name)
    }
  }

  #scopeOf({ scope }: Lease): Scope {
    const known = this.#scopes.get(scope)
    if (known) return known
    const made = { held: noEntries<HeldLease>(), line: noEntries<Waiting>(), untilClean: MIN_CALLS }
    this.#scopes.set(scope, made)
    return made
  }

  /** The token of another waiter that comes first. Those for names do not keep prefixes waiting. */
  #ahead({ line }: Scope, lease: Lease, before: number): string | undefined {
    const now = performance.now()
    let first: Waiting | undefined
    for (const waiter of inTheWay(lease.kind === 'name' ? line : { ...line, name: new Map() }, lease)) {
      const isOther = waiter.expires > now && waiter.lease.token !== lease.token
      if (isOther && waiter.since <= before && waiter.since <= (first?.since ?? before)) first = waiter
    }
    return first?.lease.token
  }

  #leave({ line }: Scope, { kind, name, token }: Lease): void {
    if (line[kind].get(name)?.lease.token === token) line[kind].delete(name)
  }
}

/** Fewest calls between two looks for what has expired. */
const MIN_CALLS = 64

/** The next time is after as many calls as there are entries: so a call costs the same however many leases are held. */
function clean(scope: Scope, now: number): void {
  let left = 0
  for (const all of [scope.held.name, scope.held.prefix, scope.line.name, scope.line.prefix]) {
    for (const [name, { expires }] of all) if (expires <= now) all.delete(name)
    left += all.size
  }
  scope.untilClean = Math.max(MIN_CALLS, left)
}

function noEntries<T>(): Entries<T> {
  return { name: new Map(), prefix: new Map() }
}

function isEmpty({ held, line }: Scope): boolean {
  return held.name.size + held.prefix.size + line.name.size + line.prefix.size === 0
}

function heldOf({ held }: Scope, { kind, name, token }: Lease): HeldLease | undefined {
  const found = held[kind].get(name)
  return found?.lease.token === token && found.expires > performance.now() ? found : undefined
}

/** The entries whose names the lease covers, or that cover its. */
function inTheWay<T extends HeldLease>(entries: Entries<T>, lease: Lease): T[] {
  const found: T[] = []
  if (lease.kind === 'name') {
    const same = entries.name.get(lease.name)
    if (same) found.push(same)
  } else {
    for (const other of entries.name.values()) if (covers(lease, other.lease)) found.push(other)
  }
  for (const other of entries.prefix.values())
    if (covers(other.lease, lease) || covers(lease, other.lease)) found.push(other)
  return found
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
 * A caller that is refused waits in line: the store remembers the longest-waiting token for each name and for the
 * prefixes of each scope, for WAITING_MS after its last attempt, and refuses a free lease to all who wait for a shorter
 * time. When such a lease becomes free, it sends the signal `lease` with that token.
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
