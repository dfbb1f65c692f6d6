import { keccak_256 } from '@noble/hashes/sha3.js'
import type { Database } from '../../database.js'

export const ISSUED = 'issued'
export const EARNED = 'earned'
export const walletAccount = (address: string): string => `wallet ${address}`
export const lockAccount = (wCid: string): string => `lock ${wCid}`

/** An account, and what it gets; negative for what it gives. */
export type Entry = readonly [account: string, amount: bigint]

/** An account has less than it is to give. Nothing has moved. */
export class InsufficientFunds extends Error {
  override readonly name = 'InsufficientFunds'
}

/** Accounts and transfers between them. Call writing methods inside a transaction. */
export class Ledger {
  readonly #id: string
  readonly #find
  readonly #add
  readonly #addEntry
  readonly #open
  readonly #change
  readonly #balance
  readonly #sums

  /** @param id of the service: part of the hashes of transfers, which thereby differ from those of other services */
  constructor(db: Database, id: string) {
    this.#id = id
    this.#find = db.prepare('SELECT hash FROM transfers WHERE reference = ?')
    this.#add = db.prepare('INSERT INTO transfers (reference, hash, created) VALUES (?, ?, ?)')
    this.#addEntry = db.prepare('INSERT INTO entries (transfer, account, amount) VALUES (?, ?, ?)')
    this.#open = db.prepare('INSERT OR IGNORE INTO accounts (name, balance) VALUES (?, 0)')
    this.#change = db.prepare('UPDATE accounts SET balance = balance + ? WHERE name = ?')
    this.#balance = db.prepare('SELECT balance FROM accounts WHERE name = ?')
    this.#balance.setReadBigInts(true)
    this.#sums = db.prepare(
      'SELECT coalesce(sum(balance), 0) AS balances, (SELECT coalesce(sum(amount), 0) FROM entries) AS entries FROM accounts',
    )
    this.#sums.setReadBigInts(true)
  }

  /** Millionths of a stable coin; 0 for an account that never had any. */
  balance(account: string): bigint {
    return (this.#balance.get(account)?.balance as bigint | undefined) ?? 0n
  }

  /** Hash of the transfer with this reference. */
  find(reference: string): string | undefined {
    return this.#find.get(reference)?.hash as string | undefined
  }

  /**
   * Moves amounts between accounts, once per reference: a repeated call moves nothing. Throws InsufficientFunds, and
   * RangeError when the amounts are not zero together.
   * @param now Unix seconds
   * @returns hash of the transfer, `0x` and 64 hexadecimal digits
   */
  transfer(reference: string, entries: readonly Entry[], now: number): string {
    const known = this.find(reference)
    if (known !== undefined) return known
    if (entries.reduce((sum, [, amount]) => sum + amount, 0n) !== 0n) {
      throw new RangeError('The entries of a transfer must be zero together.')
    }
    for (const [account, amount] of entries) {
      if (account !== ISSUED && this.balance(account) + amount < 0n) {
        throw new InsufficientFunds(`The account has ${this.balance(account)} and cannot give ${-amount}.`)
      }
    }
    const hash = `0x${Buffer.from(keccak_256(Buffer.from(`${this.#id} ${reference}`))).toString('hex')}`
    const transfer = this.#add.run(reference, hash, now).lastInsertRowid
    for (const [account, amount] of entries) {
      if (amount === 0n) continue
      this.#open.run(account)
      this.#change.run(amount, account)
      this.#addEntry.run(transfer, account, amount)
    }
    return hash
  }

  /** Sum of all balances and of all entries: both are 0. */
  sums(): { readonly balances: bigint; readonly entries: bigint } {
    return this.#sums.get() as { balances: bigint; entries: bigint }
  }
}
