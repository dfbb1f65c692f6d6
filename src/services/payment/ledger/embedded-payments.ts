import type { Database, Writer } from '../../database.js'
import { MOST_ISSUED } from './amount.js'
import { EARNED, ISSUED, Ledger, lockAccount, walletAccount } from './ledger.js'
import { LockTable } from './lock-table.js'
import type { Lock, PaymentOrder, Payments, RefusedPayment } from './payments.js'

/** An upload is paid already, by another order. Nothing has moved. */
export class AlreadyPaid extends Error {
  override readonly name = 'AlreadyPaid'
}

/** Payments in the embedded ledger: coins without a value, for one service. Each step is one transaction. */
export class EmbeddedPayments implements Payments {
  readonly #writer: Writer
  readonly #ledger: Ledger
  readonly #locks: LockTable

  /** @param id of the service */
  constructor(db: Database, writer: Writer, id: string) {
    this.#writer = writer
    this.#ledger = new Ledger(db, id)
    this.#locks = new LockTable(db)
  }

  /** @param address in lower case */
  balance(address: string): bigint {
    return this.#ledger.balance(walletAccount(address))
  }

  inUnits(millionths: bigint): bigint {
    return millionths
  }

  find(wCid: string): Lock | undefined {
    return this.#locks.find(wCid)
  }

  /** None: the ledger takes only payments that count. */
  refused(): readonly RefusedPayment[] {
    return []
  }

  /**
   * Brings coins into circulation, once per reference. Rejects with RangeError beyond `MOST_ISSUED`.
   * @returns hash of the transfer
   */
  fund(address: string, amount: bigint, reference: string, now: number): Promise<string> {
    return this.#writer.run(() => {
      const known = this.#ledger.find(`fund ${reference}`)
      if (known !== undefined) return known
      if (amount <= 0n || amount - this.#ledger.balance(ISSUED) > MOST_ISSUED) {
        throw new RangeError(`The ledger can hold from 1 to ${MOST_ISSUED} millionths of a coin.`)
      }
      const entries = [[ISSUED, -amount] as const, [walletAccount(address), amount] as const]
      return this.#ledger.transfer(`fund ${reference}`, entries, now)
    })
  }

  /**
   * Locks an amount of the wallet for an upload. A repeated order is the payment of the first. Rejects with
   * InsufficientFunds, with AlreadyPaid after another order, and with RangeError unless the amount is above 0.
   */
  pay(order: PaymentOrder): Promise<Lock> {
    const { wCid, wallet, amount } = order
    return this.#writer.run(() => {
      const known = this.#locks.find(wCid)
      if (known !== undefined) {
        if (known.wallet === wallet && known.amount === amount) return known
        throw new AlreadyPaid('The upload is paid already.')
      }
      if (amount <= 0n) throw new RangeError('A payment must be above 0.')
      const entries = [[walletAccount(wallet), -amount] as const, [lockAccount(wCid), amount] as const]
      this.#locks.add(order, this.#ledger.transfer(`lock ${wCid}`, entries, order.paidAt))
      return this.#locks.find(wCid) as Lock
    })
  }

  unlock(wCid: string, deal: string, amount: bigint, now: number): Promise<string> {
    return this.#writer.run(() => {
      const reference = `unlock ${wCid} ${deal}`
      const known = this.#ledger.find(reference)
      if (known !== undefined) return known
      const rest = this.#ledger.balance(lockAccount(wCid))
      const given = amount < rest ? amount : rest
      this.#locks.unlock(wCid, given, now)
      return this.#ledger.transfer(reference, [[lockAccount(wCid), -given] as const, [EARNED, given] as const], now)
    })
  }

  refund(wCid: string, now: number): Promise<boolean> {
    return this.#writer.run(() => {
      const lock = this.#locks.find(wCid)
      if (lock === undefined || !lock.isOpen) return true
      const rest = this.#ledger.balance(lockAccount(wCid))
      const entries = [[lockAccount(wCid), -rest] as const, [walletAccount(lock.wallet), rest] as const]
      this.#ledger.transfer(`refund ${wCid}`, entries, now)
      this.#locks.close(wCid, rest)
      return true
    })
  }

  /** Sums of the ledger: both are 0. */
  sums(): ReturnType<Ledger['sums']> {
    return this.#ledger.sums()
  }
}
