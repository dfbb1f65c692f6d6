import type { Guard } from '../src/state/guard.js'
import type { LeaseStore } from '../src/state/locks/memory-leases.js'

/** The leases of a database, whose calls fail at once while it does not answer. */
export function guarded(leases: LeaseStore, guard: Guard): LeaseStore {
  return {
    acquire: (lease, ms, waitedMs) => guard.run(() => leases.acquire(lease, ms, waitedMs)),
    renew: (lease, ms) => guard.run(() => leases.renew(lease, ms)),
    yield: (lease, ms) => guard.run(() => leases.yield(lease, ms)),
    release: (lease) => guard.run(() => leases.release(lease)),
  }
}
