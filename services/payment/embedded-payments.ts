import { formatDecimal } from '../../common/decimal.js'
import type { Database } from '../store/database.js'
import { untilKnown } from '../store/until-known.js'
import {
  EARNED,
  ISSUED,
  type Ledger,
  type Lock,
  type LockSums,
  type LockTable,
  lockAccount,
  type PaymentOrder,
  walletAccount,
} from './ledger.js'

export class AlreadyPaid extends Error {
  override readonly name = 'AlreadyPaid'
}

interface LedgerTables {
  readonly ledger: Ledger
  readonly locks: LockTable
}

/** Longest time in which a funding is repeated of which it is unknown whether it has taken place, ms. */
const FUND_MS = 5000

/** Payments in the embedded ledger: coins without a value, for one service. Each step is one transaction. */
export class EmbeddedPayments implements Payments {
  readonly #db: Database<LedgerTables>
  readonly #id: string

  /** @param id of the service */
  constructor(db: Database<LedgerTables>, id: string) {
    this.#db = db
    this.#id = id
  }

  /** @param address in lower case */
  balance(address: string): Promise<bigint> {
    return this.#db.read.ledger.balance(walletAccount(address))
  }

  async inUnits(millionths: bigint): Promise<bigint> {
    return millionths
  }

  holdings(address: string): Promise<Holdings> {
    return this.#db.transaction(async ({ ledger, locks }) => {
      const amount = await ledger.balance(walletAccount(address))
      return { balances: [{ kind: 'token', decimals: DECIMALS, amount }], sums: await locks.sumsOf(address) }
    })
  }

  find(wCid: string): Promise<Lock | undefined> {
    return this.#db.read.locks.find(wCid)
  }

  /** Resolves with none: the ledger takes only payments that count. */
  async refused(): Promise<readonly RefusedPayment[]> {
    return []
  }

  /** Does what `fund` does, and repeats it while the database is away: it may have taken place unseen. */
  async fundSurely(address: string, amount: bigint, reference: string, now: number): Promise<void> {
    await untilKnown(() => this.fund(address, amount, reference, now), { forMs: FUND_MS })
  }

  /**
   * Brings coins into circulation, once per reference. Rejects with RangeError beyond `MAX_ISSUED`.
   * @returns hash of the transfer
   */
  fund(address: string, amount: bigint, reference: string, now: number): Promise<string> {
    return this.#db.transaction(async ({ ledger }) => {
      const known = await ledger.find(`fund ${reference}`)
      if (known !== undefined) return known
      if (amount <= 0n || amount - (await ledger.balance(ISSUED)) > MAX_ISSUED) {
        throw new RangeError(`The ledger can hold from 1 to ${MAX_ISSUED} millionths of a coin.`)
      }
      const entries = [[ISSUED, -amount] as const, [walletAccount(address), amount] as const]
      return ledger.transfer(this.#id, `fund ${reference}`, entries, now)
    })
  }

  /**
   * Locks an amount of the wallet for an upload. A repeated order is the payment of the first. Rejects with
   * InsufficientFunds, with AlreadyPaid after another order, and with RangeError unless the amount is above 0.
   */
  pay(order: PaymentOrder): Promise<Lock> {
    return this.#db.transaction((tables) => this.payWithin(tables, order))
  }

  /** Does what `pay` does, in a transaction that does more. */
  async payWithin({ ledger, locks }: LedgerTables, order: PaymentOrder): Promise<Lock> {
    const { wCid, wallet, amount } = order
    const known = await locks.find(wCid)
    if (known !== undefined) {
      if (known.wallet === wallet && known.amount === amount) return known
      throw new AlreadyPaid('The upload is paid already.')
    }
    if (amount <= 0n) throw new RangeError('A payment must be above 0.')
    const entries = [[walletAccount(wallet), -amount] as const, [lockAccount(wCid), amount] as const]
    await locks.add(order, await ledger.transfer(this.#id, `lock ${wCid}`, entries, order.paidAt))
    return (await locks.find(wCid)) as Lock
  }

  unlock(wCid: string, deal: string, amount: bigint, now: number): Promise<string> {
    return this.#db.transaction(async ({ ledger, locks }) => {
      const reference = `unlock ${wCid} ${deal}`
      const known = await ledger.find(reference)
      if (known !== undefined) return known
      const rest = await ledger.balance(lockAccount(wCid))
      const given = amount < rest ? amount : rest
      await locks.unlock(wCid, given, now)
      const entries = [[lockAccount(wCid), -given] as const, [EARNED, given] as const]
      return ledger.transfer(this.#id, reference, entries, now)
    })
  }

  refund(wCid: string, now: number): Promise<boolean> {
    return this.#db.transaction(async ({ ledger, locks }) => {
      const lock = await locks.find(wCid)
      if (lock === undefined || !lock.isOpen) return true
      const rest = await ledger.balance(lockAccount(wCid))
      const entries = [[lockAccount(wCid), -rest] as const, [walletAccount(lock.wallet), rest] as const]
      await ledger.transfer(this.#id, `refund ${wCid}`, entries, now)
      await locks.close(wCid, rest)
      return true
    })
  }

  /** Sums of the ledger: both are 0. */
  sums(): ReturnType<Ledger['sums']> {
    return this.#db.read.ledger.sums()
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
interface Balance {
  readonly kind: 'token' | 'native'
  readonly decimals: number
  /** In its smallest unit; undefined while it cannot be read. */
  readonly amount: bigint | undefined
}

/** What a wallet has, of each coin, and what it has locked: both at one moment in the embedded ledger. */
export interface Holdings {
  readonly balances: readonly Balance[]
  readonly sums: LockSums
}

/** The payments for uploads, as the service uses them. What has been done is durable when a promise resolves. */
export interface Payments {
  /** Millionths of a coin in its smallest units, in which locks are; undefined while the coin is not known. */
  inUnits(millionths: bigint): Promise<bigint | undefined>
  /** @param address of a wallet, in lower case */
  holdings(address: string): Promise<Holdings>
  /** The payment for an upload. */
  find(wCid: string): Promise<Lock | undefined>
  /** Payments for an upload that were made but do not count: they come back to their wallets. */
  refused(wCid: string): Promise<readonly RefusedPayment[]>
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
