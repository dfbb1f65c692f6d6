import { LRUCache } from 'lru-cache'
import type { ServicesLog } from '../../log.js'
import type { Database } from '../../store/database.js'
import { type Holdings, inUnits, type Payments, type RefusedPayment } from '../embedded-payments.js'
import type { Lock, LockTable } from '../ledger.js'
import type { ChainTable } from './chain-table.js'
import { ChainEffects, type ChainTables, type ChainTerms } from './effects.js'
import { type ChainNode, NodeFailure } from './node.js'

/** Decimals of the coin in which chains of this kind (EVM) take their fees. */
const NATIVE_DECIMALS = 18

/** Most payments whose unlocking was asked for in the log. */
const MAX_ASKED = 10_000

/** Brings the record of a payment to what the contract has of it now. Never rejects. */
type ReadPayment = (wCid: string) => Promise<void>

/**
 * Payments on a chain. The service has no key there: the owner of the contract unlocks and gives back, and this follows
 * the logs, and asks the contract where it has unlocked without one.
 */
export class ChainPayments implements Payments {
  readonly #table: ChainTable
  readonly #locks: LockTable
  readonly #log: ServicesLog
  readonly #read: ReadPayment
  readonly #node: Pick<ChainNode, 'balances'>
  readonly #asked = new LRUCache<string, true>({ max: MAX_ASKED })

  constructor(
    { chain, locks }: Pick<ChainTables, 'chain' | 'locks'>,
    log: ServicesLog,
    read: ReadPayment,
    node: Pick<ChainNode, 'balances'>,
  ) {
    this.#node = node
    this.#table = chain
    this.#locks = locks
    this.#log = log
    this.#read = read
  }

  async inUnits(millionths: bigint): Promise<bigint | undefined> {
    const decimals = (await this.#table.state())?.decimals
    return decimals == null ? undefined : inUnits(millionths, decimals)
  }

  async holdings(address: string): Promise<Holdings> {
    const read = await this.#node.balances(address).catch((error) => {
      if (error instanceof NodeFailure) return undefined
      throw error
    })
    const decimals = (await this.#table.state())?.decimals ?? 0
    return {
      balances: [
        { kind: 'token', decimals, amount: read?.token },
        { kind: 'native', decimals: NATIVE_DECIMALS, amount: read?.native },
      ],
      sums: await this.#locks.sumsOf(address),
    }
  }

  find(wCid: string): Promise<Lock | undefined> {
    return this.#locks.find(wCid)
  }

  async refused(wCid: string): Promise<readonly RefusedPayment[]> {
    return (await this.#table.logsOf(wCid))
      .filter(({ kind, outcome }) => kind === 'lock' && outcome !== 'counted')
      .map(({ hash, amount, outcome }) => ({ hash, amount, reason: outcome }))
  }

  async unlock(wCid: string, deal: string, amount: bigint): Promise<string | undefined> {
    if (amount === 0n) return ''
    const lock = await this.#present(wCid)
    if (lock === undefined) return undefined
    if (lock.unlockedAt > 0) {
      const logs = (await this.#table.logsOf(wCid)).filter(({ outcome }) => outcome === 'counted')
      return (logs.findLast(({ kind }) => kind === 'unlock') ?? logs.at(-1))?.hash
    }
    if (lock.isOpen) await this.#ask(wCid, deal, amount)
    return undefined
  }

  async refund(wCid: string): Promise<boolean> {
    return (await this.#present(wCid))?.isOpen === false
  }

  async #present(wCid: string): Promise<Lock | undefined> {
    if ((await this.find(wCid))?.isOpen) await this.#read(wCid)
    return this.find(wCid)
  }

  /** Tells the owner of the contract once per start. */
  async #ask(wCid: string, deal: string, amount: bigint): Promise<void> {
    if (this.#asked.has(wCid)) return
    this.#asked.set(wCid, true)
    this.#log.info(
      { wCid, deal, amount: String((await this.inUnits(amount)) ?? '') },
      'A deal is active: its payment on the chain is to be unlocked.',
    )
  }
}

/** Most payments of which is known when they were read last. */
const MAX_KNOWN = 10_000

interface ReadPaymentDeps {
  readonly node: ChainNode
  readonly db: Database<ChainTables>
  readonly terms: ChainTerms
}

/**
 * Asks the contract for a payment, at the block up to which its events have been read: at most once for each such
 * block. What it tells is taken back with this block when the chain is reorganised.
 */
export function readPayment({ node, db, terms }: ReadPaymentDeps): ReadPayment {
  const readAt = new LRUCache<string, number>({ max: MAX_KNOWN })

  async function read(wCid: string, number: number): Promise<void> {
    const locked = await node.locked(wCid, number)
    const block = await node.block(number)
    if (locked === undefined || block === undefined) return
    await db.transaction(async (tables) => {
      // The chain was reorganised, or this is the answer of a node on another branch.
      if ((await tables.chain.block(number))?.hash !== block.hash) return
      await new ChainEffects(terms, tables).settle(wCid, locked, {
        block: number,
        blockHash: block.hash,
        time: block.timestamp,
      })
    })
  }

  return async (wCid) => {
    const last = (await db.read.chain.state())?.lastBlock
    if (last == null || readAt.get(wCid) === last) return
    readAt.set(wCid, last)
    try {
      await read(wCid, last)
    } catch (error) {
      // The contract has no such call, or the node does not answer, which its follower logs.
      if (!(error instanceof NodeFailure)) throw error
    }
  }
}
