import type { Writer } from '../../database.js'
import type { ReadPayment } from './chain-payments.js'
import type { ChainTable } from './chain-table.js'
import type { ChainEffects } from './effects.js'
import { type ChainNode, NodeFailure } from './node.js'

/** Most payments of which is known when they were read last. */
const MOST_KNOWN = 10_000

export interface ReadPaymentParts {
  readonly node: ChainNode
  readonly table: ChainTable
  readonly effects: ChainEffects
  readonly writer: Writer
}

/**
 * Asks the contract for a payment, at the block up to which its events have been read: at most once for each such
 * block. What it tells is taken back with this block when the chain is reorganised.
 */
export function readPayment({ node, table, effects, writer }: ReadPaymentParts): ReadPayment {
  const readAt = new Map<string, number>()

  async function read(wCid: string, number: number): Promise<void> {
    const locked = await node.locked(wCid, number)
    const block = await node.block(number)
    if (locked === undefined || block === undefined) return
    await writer.run(() => {
      // The chain was reorganised, or this is the answer of a node on another branch.
      if (table.block(number)?.hash !== block.hash) return
      effects.settle(wCid, locked, { block: number, blockHash: block.hash, time: block.timestamp })
    })
  }

  return async (wCid) => {
    const last = table.state()?.lastBlock
    if (last == null || readAt.get(wCid) === last) return
    if (readAt.size >= MOST_KNOWN) readAt.clear()
    readAt.set(wCid, last)
    try {
      await read(wCid, last)
    } catch (error) {
      // The contract has no such call, or the node does not answer, which its follower logs.
      if (!(error instanceof NodeFailure)) throw error
    }
  }
}
