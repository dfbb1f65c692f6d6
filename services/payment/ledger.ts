import { keccak_256 } from '@noble/hashes/sha3.js'
import { Columns } from '../columns.js'
import { tableOf } from '../store/database.js'

export const ISSUED = 'issued'

export const EARNED = 'earned'

export const walletAccount = (address: string): string => `wallet ${address}`

export const lockAccount = (wCid: string): string => `lock ${wCid}`

/** An account, and what it gets; negative for what it gives. */
type Entry = readonly [account: string, amount: bigint]

/** An account has less than it is to give. Nothing has moved. */
export class InsufficientFunds extends Error {
  override readonly name = 'InsufficientFunds'
}

/** Accounts and transfers between them. Call writing methods inside a transaction. */
export class Ledger extends tableOf({
  find: 'SELECT hash FROM transfers WHERE reference = ?',
  add: 'INSERT INTO transfers (reference, hash, created) VALUES (?, ?, ?) RETURNING id',
  addEntry: 'INSERT INTO entries (transfer, account, amount) VALUES (?, ?, ?)',
  open: 'INSERT INTO accounts (name, balance) VALUES (?, 0) ON CONFLICT DO NOTHING',
  change: 'UPDATE accounts SET balance = balance + ? WHERE name = ?',
  balance: 'SELECT CAST(balance AS TEXT) AS balance FROM accounts WHERE name = ?',
  sums: `SELECT CAST(coalesce(sum(balance), 0) AS TEXT) AS balances,
    (SELECT CAST(coalesce(sum(amount), 0) AS TEXT) FROM entries) AS entries FROM accounts`,
}) {
  /** Millionths of a stable coin; 0 for an account that never had any. */
  async balance(account: string): Promise<bigint> {
    return BigInt((await this.sql.balance.get<{ balance: string }>(account))?.balance ?? 0)
  }

  async find(reference: string): Promise<string | undefined> {
    return (await this.sql.find.get<{ hash: string }>(reference))?.hash
  }

  /**
   * Moves amounts between accounts, once per reference: a repeated call moves nothing. Throws InsufficientFunds, and
   * RangeError when the amounts are not zero together.
   * @param service id of the service: part of the hash, which thereby differs from those of other services
   * @param now Unix seconds
   * @returns hash of the transfer, `0x` and 64 hexadecimal digits
   */
  async transfer(service: string, reference: string, entries: readonly Entry[], now: number): Promise<string> {
    const known = await this.find(reference)
    if (known !== undefined) return known
    if (entries.reduce((sum, [, amount]) => sum + amount, 0n) !== 0n) {
      throw new RangeError('The entries of a transfer must be zero together.')
    }
    for (const [account, amount] of entries) {
      if (account === ISSUED) continue
      const balance = await this.balance(account)
      if (balance + amount < 0n) {
        throw new InsufficientFunds(`The account has ${balance} and cannot give ${-amount}.`)
      }
    }
    const hash = `0x${Buffer.from(keccak_256(Buffer.from(`${service} ${reference}`))).toString('hex')}`
    const transfer = (await this.sql.add.get<{ id: number }>(reference, hash, now))?.id ?? null
    for (const [account, amount] of entries) {
      if (amount === 0n) continue
      await this.sql.open.run(account)
      await this.sql.change.run(amount, account)
      await this.sql.addEntry.run(transfer, account, amount)
    }
    return hash
  }

  async sums(): Promise<{ readonly balances: bigint; readonly entries: bigint }> {
    const { balances = 0, entries = 0 } = (await this.sql.sums.get<{ balances: string; entries: string }>()) ?? {}
    return { balances: BigInt(balances), entries: BigInt(entries) }
  }
}

const LOCK = new Columns<Lock>({ amount: 'amount', unlocked: 'amount', refunded: 'amount', isOpen: 'flag' })

const ADDED = ['wCid', 'wallet', 'amount', 'hash', 'paidAt', 'deadline', 'deadlineEpoch'] as const

/** The table of payments. Call writing methods inside a transaction. */
export class LockTable extends tableOf({
  find: 'SELECT * FROM locks WHERE w_cid = ?',
  any: 'SELECT 1 FROM locks LIMIT 1',
  amounts: 'SELECT amount, unlocked, refunded, is_open AS open FROM locks WHERE wallet = ?',
  add: LOCK.insert('locks', ADDED),
  setUnlocked: 'UPDATE locks SET unlocked = ?, unlocked_at = ? WHERE w_cid = ?',
  close: 'UPDATE locks SET refunded = ?, is_open = 0 WHERE w_cid = ?',
  restore: "UPDATE locks SET unlocked = ?, unlocked_at = ?, refunded = '0', is_open = 1 WHERE w_cid = ?",
  remove: 'DELETE FROM locks WHERE w_cid = ?',
}) {
  async find(wCid: string): Promise<Lock | undefined> {
    const row = await this.sql.find.get(wCid)
    return row && LOCK.read(row)
  }

  async any(): Promise<boolean> {
    return (await this.sql.any.get()) !== undefined
  }

  /** What became of all that a wallet locked. */
  async sumsOf(wallet: string): Promise<LockSums> {
    const sums = { locked: 0n, unlocked: 0n, refunded: 0n }
    for (const { amount, unlocked, refunded, open } of await this.sql.amounts.all<LockAmounts>(wallet)) {
      sums.unlocked += BigInt(unlocked)
      sums.refunded += BigInt(refunded)
      if (open === 1) sums.locked += BigInt(amount) - BigInt(unlocked)
    }
    return sums
  }

  async add(order: PaymentOrder, hash: string): Promise<void> {
    await this.sql.add.run(...LOCK.values({ ...order, hash }, ADDED))
  }

  async unlock(wCid: string, amount: bigint, now: number): Promise<void> {
    const before = (await this.find(wCid))?.unlocked ?? 0n
    await this.sql.setUnlocked.run(String(before + amount), now, wCid)
  }

  async close(wCid: string, refunded: bigint): Promise<void> {
    await this.sql.close.run(String(refunded), wCid)
  }

  /** Opens a lock again, of which this much is unlocked. */
  async restore(wCid: string, unlocked: bigint, unlockedAt: number): Promise<void> {
    await this.sql.restore.run(String(unlocked), unlockedAt, wCid)
  }

  async remove(wCid: string): Promise<void> {
    await this.sql.remove.run(wCid)
  }
}

/** Decimal texts. */
interface LockAmounts {
  readonly amount: string
  readonly unlocked: string
  readonly refunded: string
  readonly open: number
}

/** In the smallest units of the coin. */
export interface LockSums {
  readonly locked: bigint
  readonly unlocked: bigint
  readonly refunded: bigint
}

/**
 * The embedded ledger: transfers of double-entry rows between accounts. Amounts are in millionths of a stable coin. The
 * account `issued` holds what was brought into circulation, as a negative amount, so that all balances together are
 * zero; no other account can be negative. `wallet <address>` and `lock <w_cid>` are further accounts, and `earned`.
 *
 * `locks` holds one payment per upload, and what became of it. Times are Unix seconds, epochs those of the network.
 */
export const ledgerSchema = `
  CREATE TABLE accounts (
    name TEXT PRIMARY KEY,
    balance INTEGER NOT NULL,
    CHECK (balance >= 0 OR name = 'issued')
  ) STRICT;
  CREATE TABLE transfers (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    reference TEXT NOT NULL UNIQUE,
    hash TEXT NOT NULL UNIQUE,
    created INTEGER NOT NULL
  ) STRICT;
  CREATE TABLE entries (
    transfer INTEGER NOT NULL REFERENCES transfers (id),
    account TEXT NOT NULL REFERENCES accounts (name),
    amount INTEGER NOT NULL,
    PRIMARY KEY (transfer, account)
  ) STRICT, WITHOUT ROWID;
  CREATE TABLE locks (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    w_cid TEXT NOT NULL UNIQUE,
    wallet TEXT NOT NULL,
    amount INTEGER NOT NULL,
    hash TEXT NOT NULL,
    paid_at INTEGER NOT NULL,
    deadline INTEGER NOT NULL,
    deadline_epoch INTEGER NOT NULL,
    unlocked INTEGER NOT NULL DEFAULT 0,
    unlocked_at INTEGER NOT NULL DEFAULT 0,
    refunded INTEGER NOT NULL DEFAULT 0,
    is_open INTEGER NOT NULL DEFAULT 1
  ) STRICT;
  CREATE INDEX locks_of_wallet ON locks (wallet, id);
`

/** Amounts of payments as decimal texts: tokens with 18 decimals have larger ones than 64 bits hold. */
export const exactLockSchema = `
  CREATE TABLE exact_locks (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    w_cid TEXT NOT NULL UNIQUE,
    wallet TEXT NOT NULL,
    amount TEXT NOT NULL,
    hash TEXT NOT NULL,
    paid_at INTEGER NOT NULL,
    deadline INTEGER NOT NULL,
    deadline_epoch INTEGER NOT NULL,
    unlocked TEXT NOT NULL DEFAULT '0',
    unlocked_at INTEGER NOT NULL DEFAULT 0,
    refunded TEXT NOT NULL DEFAULT '0',
    is_open INTEGER NOT NULL DEFAULT 1
  ) STRICT;
  INSERT INTO exact_locks SELECT id, w_cid, wallet, CAST(amount AS TEXT), hash, paid_at, deadline, deadline_epoch,
    CAST(unlocked AS TEXT), unlocked_at, CAST(refunded AS TEXT), is_open FROM locks;
  DROP TABLE locks;
  ALTER TABLE exact_locks RENAME TO locks;
  CREATE INDEX locks_of_wallet ON locks (wallet, id);
  ALTER TABLE chain ADD COLUMN decimals INTEGER;
`

/**
 * A payment for an upload: locked until its deals are made, or its deadline passes. Amounts are in the smallest units
 * of its coin.
 */
export interface Lock {
  /** Number of the payment, in the order of payments. */
  readonly id: number
  readonly wCid: string
  /** Address of the payer, in lower case. */
  readonly wallet: string
  readonly amount: bigint
  /** Hash of the transfer that locked it. */
  readonly hash: string
  /** Unix seconds. */
  readonly paidAt: number
  readonly deadline: number
  /** Epoch of the network at which the deadline passes. */
  readonly deadlineEpoch: number
  /** What was unlocked for the storage provider so far, and when last; 0 when never. */
  readonly unlocked: bigint
  readonly unlockedAt: number
  /** What went back to the wallet. */
  readonly refunded: bigint
  /** False once nothing is locked any more. */
  readonly isOpen: boolean
}

/** What a wallet orders to lock. */
export type PaymentOrder = Pick<Lock, 'wCid' | 'wallet' | 'amount' | 'paidAt' | 'deadline' | 'deadlineEpoch'>
