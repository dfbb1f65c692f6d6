import type { ServicesLog } from '../../log.js'
import type { LockTable } from '../ledger/lock-table.js'
import type { Lock, Payments, RefusedPayment } from '../ledger/payments.js'
import { inUnits } from '../ledger/units.js'
import type { ChainTable } from './chain-table.js'

/** Most payments whose unlocking was asked for in the log. */
const MOST_ASKED = 10_000

/** Brings the record of a payment to what the contract has of it now. Never rejects. */
export type ReadPayment = (wCid: string) => Promise<void>

/**
 * Payments on a chain. The service has no key there: the owner of the contract unlocks and gives back, and this follows
 * the logs, and asks the contract where it has unlocked without one.
 */
export class ChainPayments implements Payments {
  readonly #table: ChainTable
  readonly #locks: LockTable
  readonly #log: ServicesLog
  readonly #read: ReadPayment
  readonly #asked = new Set<string>()

  constructor(table: ChainTable, locks: LockTable, log: ServicesLog, read: ReadPayment) {
    this.#table = table
    this.#locks = locks
    this.#log = log
    this.#read = read
  }

  inUnits(millionths: bigint): bigint | undefined {
    const decimals = this.#table.state()?.decimals
    return decimals == null ? undefined : inUnits(millionths, decimals)
  }

  find(wCid: string): Lock | undefined {
    return this.#locks.find(wCid)
  }

  refused(wCid: string): readonly RefusedPayment[] {
    return this.#table
      .logsOf(wCid)
      .filter(({ kind, outcome }) => kind === 'lock' && outcome !== 'counted')
      .map(({ hash, amount, outcome }) => ({ hash, amount, reason: outcome }))
  }

  async unlock(wCid: string, deal: string, amount: bigint): Promise<string | undefined> {
    if (amount === 0n) return ''
    const lock = await this.#present(wCid)
    if (lock === undefined) return undefined
    if (lock.unlockedAt > 0) {
      const logs = this.#table.logsOf(wCid).filter(({ outcome }) => outcome === 'counted')
      return (logs.findLast(({ kind }) => kind === 'unlock') ?? logs.at(-1))?.hash
    }
    if (lock.isOpen) this.#ask(wCid, deal, amount)
    return undefined
  }

  async refund(wCid: string): Promise<boolean> {
    return (await this.#present(wCid))?.isOpen === false
  }

  async #present(wCid: string): Promise<Lock | undefined> {
    if (this.find(wCid)?.isOpen) await this.#read(wCid)
    return this.find(wCid)
  }

  /** Tells the owner of the contract once per start. */
  #ask(wCid: string, deal: string, amount: bigint): void {
    if (this.#asked.has(wCid)) return
    if (this.#asked.size >= MOST_ASKED) this.#asked.clear()
    this.#asked.add(wCid)
    this.#log.info(
      { wCid, deal, amount: String(this.inUnits(amount) ?? '') },
      'A deal is active: its payment on the chain is to be unlocked.',
    )
  }
}
