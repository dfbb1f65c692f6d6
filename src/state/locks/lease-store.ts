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
