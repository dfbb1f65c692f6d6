import { HOUR_MS } from '../../../common/durations.js'
import { PeriodicTask } from '../../../common/periodic-task.js'
import type { GatewayContext } from '../context.js'
import type { EndedDeal } from './deals.js'

type PruningContext = Pick<GatewayContext, 'deals' | 'manifest' | 'network' | 'writer' | 'tasks' | 'log'>

/** Most deals per query, and most files per transaction. */
const DEALS = 100
const FILES = 500

/**
 * Removes the files of ended deals from the manifest, now and every hour until the gateway stops, because no provider
 * delivers them any more. The deals themselves stay as history. The files of objects that have their only copy in such
 * a deal stay too: they explain why the object cannot be restored.
 */
export function keepPruning(context: PruningContext): void {
  const { tasks, log } = context
  const task = new PeriodicTask(
    () => tasks.run((signal) => prune(context, signal)),
    (err) => {
      if (!tasks.signal.aborted) log.warn({ err }, 'Could not remove all files of ended deals from the manifest.')
    },
  )
  task.start(HOUR_MS)
  tasks.signal.addEventListener('abort', () => task.stopTimer(), { once: true })
}

async function prune(context: PruningContext, signal: AbortSignal): Promise<void> {
  const { deals, network } = context
  for (let after = 0; ; ) {
    const ended = deals.ended(network.kind, network.epoch(), after, DEALS)
    for (const deal of ended) await pruneDeal(context, deal, signal)
    const last = ended.at(-1)
    if (last === undefined) return
    after = last.id
  }
}

async function pruneDeal({ deals, manifest, writer }: PruningContext, { id, bucket }: EndedDeal, signal: AbortSignal) {
  let kept = 0
  for (let after: Buffer | undefined = Buffer.alloc(0); after !== undefined; ) {
    signal.throwIfAborted()
    const from: Buffer = after
    const page = await writer.run(() => manifest.prune(id, bucket, from, FILES))
    kept += page.kept
    after = page.last
  }
  if (kept === 0) await writer.run(() => deals.over(id))
}
