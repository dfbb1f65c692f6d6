import { setTimeout as delay } from 'node:timers/promises'
import type { GatewayContext } from '../context.js'
import type { EndedDeal } from './deals.js'

type Tools = Pick<GatewayContext, 'deals' | 'manifest' | 'network' | 'writer' | 'tasks' | 'log'>

/** How often deals that have ended are looked for, ms. */
const EVERY_MS = 60 * 60_000

/** Looked at in one go, and in one transaction. */
const DEALS = 100
const FILES = 500

/**
 * Removes the files of deals that have ended from the manifest, now and every hour until the gateway stops: no provider delivers them any more. The deals
 * themselves stay, being the history; so do the files of objects that have their only copy there, which say why it does not come back.
 */
export function keepPruning(tools: Tools): void {
  const keep = async (signal: AbortSignal): Promise<void> => {
    for (;;) {
      try {
        await prune(tools, signal)
      } catch (err) {
        signal.throwIfAborted()
        tools.log.warn({ err }, 'Not all files of deals that have ended could be removed from the manifest.')
      }
      await delay(EVERY_MS, undefined, { signal, ref: false })
    }
  }
  // Ends only when the gateway stops.
  tools.tasks.run(keep).catch(() => {})
}

async function prune(tools: Tools, signal: AbortSignal): Promise<void> {
  const { deals, network } = tools
  for (let after = 0; ; ) {
    const ended = deals.ended(network.kind, network.epoch(), after, DEALS)
    for (const deal of ended) await pruneDeal(tools, deal, signal)
    const last = ended.at(-1)
    if (last === undefined) return
    after = last.id
  }
}

async function pruneDeal({ deals, manifest, writer }: Tools, { id, bucket }: EndedDeal, signal: AbortSignal) {
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
