import { HOUR_MS } from '../../common/time.js'
import type { GatewayContext } from './context.js'
import { pruneSums } from './store/body-sums.js'
import { removeDoomed } from './store/doomed.js'
import { LockClock } from './store/lock-clock.js'

/** Time for which the checksums of a body stay that no row names: for readers who have begun before, ms. */
const SUMS_MS = 24 * HOUR_MS

/** Time after which an order without an upload is forgotten, ms. */
const LATE_ORDER_MS = HOUR_MS

/**
 * Takes over what processes that have ended leave in a database of several, and removes what is old there, until the
 * gateway stops. One process at a time does it; another goes on when that one dies.
 */
export function keepUp(context: GatewayContext): void {
  const { db, bodies, holds, tasks, log, limits } = context
  tasks.every(
    limits.reconcileMs,
    (signal) => holds.releaseAgain(signal),
    (err) => log.warn({ err }, 'Could not release the bodies that deals held yet; trying again.'),
  )
  const clock = new LockClock(db, log)
  tasks.every(
    limits.reconcileMs,
    () => clock.keep(),
    (err) => log.warn({ err }, 'Could not keep the time of locks; trying again.'),
  )
  const failed = (err: unknown) => {
    if (!tasks.signal.aborted) log.warn({ err }, 'Could not clear away all that other processes have left.')
  }
  tasks.every(
    limits.reconcileMs,
    () => pruneSums(db, SUMS_MS),
    (err) => log.warn({ err }, 'Could not remove the checksums of bodies that are gone; trying again.'),
  )
  if (db.shared) tasks.every(limits.reconcileMs, (signal) => clear(context, failed, signal), failed)
  // A copy of a shared database may list bodies that are to be removed. Nothing reads them any more.
  else tasks.run((signal) => removeDoomed(db, bodies, 0, signal)).catch(failed)
}

async function clear(
  { upkeep, db, bodies, holds, dealService, limits }: GatewayContext,
  failed: (error: unknown) => void,
  signal: AbortSignal,
): Promise<void> {
  if (!(await upkeep.take())) return
  const steps = [
    // Before the holds, which stay as long as their deals are pending.
    () => dealService.recover(),
    () => holds.recover(signal),
    () => removeDoomed(db, bodies, limits.readersMs, signal),
    () => db.transaction(({ lateOrders }) => lateOrders.removeOld(Date.now() - LATE_ORDER_MS)),
    () => db.transaction(({ runs }) => runs.prune()),
  ]
  for (const step of steps) {
    signal.throwIfAborted()
    // What keeps one from being done keeps no other.
    await step().catch(failed)
  }
}
