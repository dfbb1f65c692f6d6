import { HOUR_MS } from '../../../common/time.js'
import { pages } from '../../store/database.js'
import type { GatewayCore } from '../core.js'
import type { EndedDeal } from './deals.js'

type PruningContext = Pick<GatewayCore, 'db' | 'network' | 'tasks' | 'log' | 'upkeep'>

/** Most deals per query, and most files per transaction. */
const MAX_DEALS = 100
const FILES = 500

/**
 * Removes the files of ended deals from the manifest, now and every hour until the gateway stops, because no provider
 * delivers them any more. The deals themselves stay as history. The files of objects that have their only copy in such
 * a deal stay too: they explain why the object cannot be restored.
 */
export function keepPruning(context: PruningContext): void {
  const failed = (err: unknown) =>
    context.log.warn({ err }, 'Could not remove all files of ended deals from the manifest.')
  context.tasks.every(HOUR_MS, (signal) => prune(context, signal), failed)
}

async function prune(context: PruningContext, signal: AbortSignal): Promise<void> {
  const { db, network, upkeep } = context
  if (!(await upkeep.take())) return
  const rounds = pages('id', 0, (after) => db.read.deals.ended(network.kind, network.epoch(), after, MAX_DEALS))
  for await (const ended of rounds) for (const deal of ended) await pruneDeal(context, deal, signal)
}

async function pruneDeal({ db }: PruningContext, { id, bucket }: EndedDeal, signal: AbortSignal) {
  let kept = 0
  for (let after: Buffer | undefined = Buffer.alloc(0); after !== undefined; ) {
    signal.throwIfAborted()
    const from: Buffer = after
    const page = await db.transaction(({ manifest }) => manifest.prune(id, bucket, from, FILES))
    kept += page.kept
    after = page.last
  }
  if (kept === 0) await db.transaction(({ deals }) => deals.over(id))
}
