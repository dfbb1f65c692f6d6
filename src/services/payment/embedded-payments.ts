import { formatDecimal } from '../../common/decimal.js'
import type { Database, Writer } from '../database.js'
import {
  EARNED,
  ISSUED,
  Ledger,
  type Lock,
  LockTable,
  lockAccount,
  type PaymentOrder,
  walletAccount,
} from './ledger.js'

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

  async balances(address: string): Promise<readonly Balance[]> {
    return [{ kind: 'token', decimals: DECIMALS, amount: this.balance(address) }]
  }

  find(wCid: string): Lock | undefined {
    return this.#locks.find(wCid)
  }

  /** None: the ledger takes only payments that count. */
  refused(): readonly RefusedPayment[] {
    return []
  }

  /**
   * Brings coins into circulation, once per reference. Rejects with RangeError beyond `MAX_ISSUED`.
   * @returns hash of the transfer
   */
  fund(address: string, amount: bigint, reference: string, now: number): Promise<string> {
    return this.#writer.run(() => {
      const known = this.#ledger.find(`fund ${reference}`)
      if (known !== undefined) return known
      if (amount <= 0n || amount - this.#ledger.balance(ISSUED) > MAX_ISSUED) {
        throw new RangeError(`The ledger can hold from 1 to ${MAX_ISSUED} millionths of a coin.`)
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

/** A payment that does not count for its upload. */
export interface RefusedPayment {
  /** Hash of the transfer. */
  readonly hash: string
  readonly amount: bigint
  /** In a few words. */
  readonly reason: string
}

/** What a wallet has of a coin. */
export interface Balance {
  readonly kind: 'token' | 'native'
  readonly decimals: number
  /** In its smallest unit; undefined while it cannot be read. */
  readonly amount: bigint | undefined
}

/** The payments for uploads, as the service uses them. What has been done is durable when a promise resolves. */
export interface Payments {
  /** Millionths of a coin in its smallest units, in which locks are; undefined while the coin is not known. */
  inUnits(millionths: bigint): bigint | undefined
  /** What a wallet has, of each coin. @param address in lower case */
  balances(address: string): Promise<readonly Balance[]>
  /** The payment for an upload. */
  find(wCid: string): Lock | undefined
  /** Payments for an upload that were made but do not count: they come back to their wallets. */
  refused(wCid: string): readonly RefusedPayment[]
  /**
   * Gives a part of a lock to the storage provider, once per deal: a repeated call changes nothing. No more than is
   * locked is given.
   * @param deal name of the deal, unique for the lock
   * @param amount millionths of a coin
   * @returns hash of the transfer; undefined while others have yet to make it: ask again later
   */
  unlock(wCid: string, deal: string, amount: bigint, now: number): Promise<string | undefined>
  /**
   * Gives what is left of a lock back to its wallet, and closes it. Without effect on a closed one.
   * @returns false while others have yet to do it: ask again later
   */
  refund(wCid: string, now: number): Promise<boolean>
}

/** Digits behind the point of an amount in stable coins. */
const DECIMALS = 6

/** The most that can be in circulation, in millionths of a stable coin: sums of it fit into 64 bits. */
export const MAX_ISSUED = 10n ** 18n

/** Parses a decimal text in stable coins, such as `12.5`, to millionths; undefined when it is invalid or has more. */
export function parseAmount(text: string): bigint | undefined {
  const match = /^(\d{1,12})(?:\.(\d{1,6}))?$/.exec(text)
  if (match === null) return undefined
  const [, whole = '', fraction = ''] = match
  return BigInt(whole + fraction.padEnd(DECIMALS, '0'))
}

/** Formats millionths as the shortest decimal text in stable coins. */
export function formatAmount(amount: bigint): string {
  return formatDecimal(amount, DECIMALS)
}

/** Digits behind the point of the amounts in which prices are, and of the embedded ledger. */
export const PRICE_DECIMALS = 6

/**
 * Millionths of a coin in the smallest units of a coin with so many digits behind the point; upwards where these are
 * larger.
 */
export function inUnits(millionths: bigint, decimals: number): bigint {
  if (decimals >= PRICE_DECIMALS) return millionths * 10n ** BigInt(decimals - PRICE_DECIMALS)
  const unit = 10n ** BigInt(PRICE_DECIMALS - decimals)
  return (millionths + unit - 1n) / unit
}
