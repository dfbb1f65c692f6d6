import { HOUR_MS } from '../../common/time.js'
import type { GatewayContext } from './context.js'
import { removeDoomed } from './store/doomed.js'

/** Time after which an order without an upload is forgotten, ms. */
const LATE_ORDER_MS = HOUR_MS

/**
 * Takes over what processes that have ended leave in a database of several, and removes what is old there, until the
 * gateway stops. One process at a time does it; another goes on when that one dies.
 */
export function keepUp(context: GatewayContext): void {
  const { db, bodies, tasks, log, limits } = context
  const failed = (err: unknown) => log.warn({ err }, 'Could not clear away all that other processes have left.')
  if (db.shared) tasks.every(limits.reconcileMs, () => clear(context), failed)
  // Of a copy of such a database. Nothing reads them.
  else tasks.run(() => removeDoomed(db, bodies, 0)).catch(failed)
}

async function clear({ upkeep, db, bodies, holds, desk, limits }: GatewayContext): Promise<void> {
  if (!(await upkeep.take())) return
  await holds.recover()
  await desk.recover()
  await removeDoomed(db, bodies, limits.readersMs)
  await db.transaction(async ({ lateOrders, runs }) => {
    await lateOrders.removeOld(Date.now() - LATE_ORDER_MS)
    await runs.prune()
  })
}
