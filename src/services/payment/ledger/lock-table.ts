import type { Database } from '../../database.js'
import type { Lock, PaymentOrder } from './payments.js'

const COLUMNS =
  'id, w_cid, wallet, amount, hash, paid_at, deadline, deadline_epoch, unlocked, unlocked_at, refunded, is_open'

/** The table of payments. Call writing methods inside a transaction. */
export class LockTable {
  readonly #find
  readonly #add
  readonly #setUnlocked
  readonly #close
  readonly #restore
  readonly #remove

  constructor(db: Database) {
    this.#find = db.prepare(`SELECT ${COLUMNS} FROM locks WHERE w_cid = ?`)
    this.#add = db.prepare(
      'INSERT INTO locks (w_cid, wallet, amount, hash, paid_at, deadline, deadline_epoch) VALUES (?, ?, ?, ?, ?, ?, ?)',
    )
    this.#setUnlocked = db.prepare('UPDATE locks SET unlocked = ?, unlocked_at = ? WHERE w_cid = ?')
    this.#close = db.prepare('UPDATE locks SET refunded = ?, is_open = 0 WHERE w_cid = ?')
    this.#restore = db.prepare(
      "UPDATE locks SET unlocked = ?, unlocked_at = ?, refunded = '0', is_open = 1 WHERE w_cid = ?",
    )
    this.#remove = db.prepare('DELETE FROM locks WHERE w_cid = ?')
  }

  find(wCid: string): Lock | undefined {
    const row = this.#find.get(wCid) as Record<string, number | string> | undefined
    return row && lockOf(row)
  }

  add({ wCid, wallet, amount, paidAt, deadline, deadlineEpoch }: PaymentOrder, hash: string): void {
    this.#add.run(wCid, wallet, String(amount), hash, paidAt, deadline, deadlineEpoch)
  }

  unlock(wCid: string, amount: bigint, now: number): void {
    const before = this.find(wCid)?.unlocked ?? 0n
    this.#setUnlocked.run(String(before + amount), now, wCid)
  }

  close(wCid: string, refunded: bigint): void {
    this.#close.run(String(refunded), wCid)
  }

  /** Opens a lock again, of which this much is unlocked. */
  restore(wCid: string, unlocked: bigint, unlockedAt: number): void {
    this.#restore.run(String(unlocked), unlockedAt, wCid)
  }

  remove(wCid: string): void {
    this.#remove.run(wCid)
  }
}

/** @param row all columns */
function lockOf(row: Readonly<Record<string, number | string>>): Lock {
  return {
    id: Number(row.id),
    wCid: row.w_cid as string,
    wallet: row.wallet as string,
    amount: BigInt(row.amount as string),
    hash: row.hash as string,
    paidAt: Number(row.paid_at),
    deadline: Number(row.deadline),
    deadlineEpoch: Number(row.deadline_epoch),
    unlocked: BigInt(row.unlocked as string),
    unlockedAt: Number(row.unlocked_at),
    refunded: BigInt(row.refunded as string),
    isOpen: Number(row.is_open) === 1,
  }
}
