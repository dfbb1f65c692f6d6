import { setTimeout as sleep } from 'node:timers/promises'
import { jitteredPause } from '../../../common/backoff.js'
import type { ServicesLog } from '../../log.js'
import type { Database, Lease } from '../../store/database.js'
import { type ChainEvent, ChainMisuse } from './abi.js'
import type { KnownBlock } from './chain-table.js'
import { ChainEffects, type ChainTables, type ChainTerms, type ConfirmedEvent } from './effects.js'
import { type ChainNode, NodeFailure } from './node.js'

/** Most blocks that one call reads, at the beginning and ever. */
const FIRST_STEP = 500
const MAX_STEP = 4000

/** Shortest and longest wait after failures, ms. */
const BACKOFF = { firstMs: 1000, longestMs: 60_000 }

/** Decimals of the token that the service counts in. */
const MAX_DECIMALS = 36

interface FollowerDeps {
  readonly node: ChainNode
  readonly db: Database<ChainTables>
  readonly lease: Lease<ChainTables>
  readonly terms: ChainTerms
  readonly log: ServicesLog
  readonly chainId: number
  readonly confirmations: number
  readonly startBlock: number | undefined
  readonly pollMs: number
  readonly stop: AbortSignal
}

/**
 * Follows the logs of the contract. Each step reads some blocks, and keeps in one transaction what they changed and how
 * far reading came. Before it, the hash of the last block is compared: when the chain was reorganised, the changes
 * above the last common block are taken back, and its blocks are read again. One process at a time follows.
 */
export class ChainFollower {
  readonly #deps: FollowerDeps
  #checked = false
  #step = FIRST_STEP
  #failures = 0

  constructor(deps: FollowerDeps) {
    this.#deps = deps
  }

  /**
   * Rejects with ChainMisuse when this is another chain, or another kind of token; with NodeFailure as the node does.
   */
  async check(): Promise<void> {
    const { node, db, chainId } = this.#deps
    const found = await node.chainId()
    if (found !== chainId) throw new ChainMisuse(`The node is one of the chain ${found}, not of ${chainId}.`)
    const coin = await node.coin()
    if (coin.decimals > MAX_DECIMALS) {
      throw new ChainMisuse(`The token has ${coin.decimals} decimals: it must have at most ${MAX_DECIMALS}.`)
    }
    await db.transaction(({ chain }) => chain.setCoin(coin))
    this.#checked = true
  }

  /** Follows the chain until the signal of the parts. Never rejects. */
  async run(): Promise<void> {
    const { stop, pollMs } = this.#deps
    while (!stop.aborted) {
      const wait = await this.#readIfHeld().then(
        (more) => (more ? 0 : pollMs),
        (error) => this.#failed(error),
      )
      await sleep(wait, undefined, { signal: stop, ref: false }).catch(() => {})
    }
  }

  async #readIfHeld(): Promise<boolean> {
    return (await this.#deps.lease.take()) && this.read()
  }

  /**
   * Reads some blocks. Rejects with NodeFailure as the node does, and with ChainMisuse as `check` does.
   * @returns false when there are no more
   */
  async read(): Promise<boolean> {
    if (!this.#checked) await this.check()
    const more = await this.#advance()
    if (this.#failures > 0) this.#deps.log.info({ failures: this.#failures }, 'The chain can be followed again.')
    this.#failures = 0
    return more
  }

  /**
   * @returns wait before the next attempt, ms: it differs among instances, so that they do not all come back at once
   */
  #failed(error: unknown): number {
    const { log, stop } = this.#deps
    if (stop.aborted) return 0
    this.#step = Math.max(1, this.#step >> 1)
    this.#failures++
    const reason = error instanceof Error ? error.message : String(error)
    if (error instanceof ChainMisuse) log.error({ reason }, 'Payments on the chain do not count: check the options.')
    else if (this.#failures === 1) log.warn({ reason }, 'Could not follow the chain. Trying again.')
    return jitteredPause(this.#failures, BACKOFF)
  }

  async #advance(): Promise<boolean> {
    const { node, db, confirmations } = this.#deps
    const { chain } = db.read
    const head = await node.head()
    const last = (await chain.state())?.lastBlock ?? (await this.#begin(Math.max(0, head - confirmations)))
    if (head < last) return false
    if (!(await this.#isOnChain(await chain.block(last)))) return this.#goBack()
    const to = Math.min(head - confirmations, last + this.#step)
    const end = to > last ? await node.block(to) : undefined
    if (end === undefined) return false
    const events = await this.#confirm(await node.events(last + 1, to))
    // Asked again: reading takes a while, and several nodes may share an address.
    if (!(await this.#isOnChain(end))) throw new NodeFailure('The chain was reorganised meanwhile')
    await this.#keep(last, events, end)
    this.#step = Math.min(this.#step * 2, MAX_STEP)
    return to < head - confirmations
  }

  #begin(latest: number): Promise<number> {
    const { lease, startBlock } = this.#deps
    return lease.db.transaction(async ({ chain }) => {
      const known = (await chain.state())?.lastBlock
      if (known != null) return known
      const first = startBlock ?? latest + 1
      await chain.setFirstBlock(first)
      return first - 1
    })
  }

  /** True for undefined: nothing tells otherwise. */
  async #isOnChain(block: KnownBlock | undefined): Promise<boolean> {
    return block === undefined || (await this.#deps.node.block(block.number))?.hash === block.hash
  }

  /** Adds what the events do not tell, to those about uploads; all must be in the chain by its blocks. */
  async #confirm(events: readonly ChainEvent[]): Promise<ConfirmedEvent[]> {
    const { node, db } = this.#deps
    const confirmed: ConfirmedEvent[] = []
    for (const event of events) {
      if ((await db.read.paid.find(event.wCid)) === undefined) continue
      const block = await node.block(event.block)
      const sender = await node.sender(event.hash)
      if (block?.hash !== event.blockHash || sender === undefined) {
        throw new NodeFailure('The logs are those of another chain than the blocks')
      }
      confirmed.push({ ...event, time: block.timestamp, sender })
    }
    return confirmed
  }

  async #keep(last: number, events: readonly ConfirmedEvent[], end: KnownBlock): Promise<void> {
    const { lease, terms, log } = this.#deps
    const refusals = await lease.db.transaction(async (tables) => {
      const { chain } = tables
      if ((await chain.state())?.lastBlock !== last) throw new NodeFailure('The blocks were read by another one')
      const effects = new ChainEffects(terms, tables)
      const reasons: (string | undefined)[] = []
      for (const event of events) reasons.push(await effects.apply(event))
      await chain.setLastBlock(end)
      return reasons
    })
    for (const [n, { wCid, kind, hash, block }] of events.entries()) {
      log.info({ wCid, kind, hash, block }, 'Read a log of the chain.')
      const reason = refusals[n]
      if (kind !== 'lock' || reason === undefined) continue
      // The contract takes no other payment for the upload until this one is back.
      log.warn({ wCid, hash, reason }, 'A payment on the chain does not count: refund it, so that the wallet can pay.')
    }
  }

  /** Goes back to the last block that is still in the chain. */
  async #goBack(): Promise<boolean> {
    const { lease, terms, log } = this.#deps
    const { chain } = lease.db.read
    // Below a block of the chain all are in it: halve the range until it is found.
    let [below, above] = [-1, (await chain.countKnown()) - 1]
    while (above - below > 1) {
      const middle = (below + above) >> 1
      if (await this.#isOnChain(await chain.knownAt(middle))) below = middle
      else above = middle
    }
    const common = below < 0 ? undefined : await chain.knownAt(below)
    const to = common?.number ?? ((await chain.state())?.firstBlock ?? 1) - 1
    const logs = await lease.db.transaction((tables) => new ChainEffects(terms, tables).goBackTo(to))
    log.warn({ block: to, logs }, 'The chain was reorganised: what its logs did above this block is taken back.')
    return true
  }
}
