import type { Database } from '../../database.js'

/** How uploads move from one status to the next. Call writing methods inside a transaction. */
export class Progress {
  readonly #markPaid
  readonly #markAllPaid
  readonly #anyLate
  readonly #markRefundable
  readonly #refundable
  readonly #markRefunded
  readonly #anyFreeLate
  readonly #markFreeLate

  constructor(db: Database) {
    this.#markPaid = db.prepare("UPDATE uploads SET status = 'Paid' WHERE w_cid = ? AND status = 'Pending'")
    this.#markAllPaid = db.prepare(
      "UPDATE uploads SET status = 'Paid' WHERE status = 'Pending' AND w_cid IN (SELECT w_cid FROM locks WHERE is_open = 1)",
    )
    const late = `locks JOIN uploads USING (w_cid) WHERE is_open = 1 AND deadline_epoch <= ?
      AND status IN ('Paid', 'TaskCreated')
      AND NOT EXISTS (SELECT 1 FROM offline_deals WHERE car = uploads.car AND status = 'Active')`
    this.#anyLate = db.prepare(`SELECT 1 FROM ${late} LIMIT 1`)
    this.#markRefundable = db.prepare(
      `UPDATE uploads SET status = 'Refundable' WHERE id IN (SELECT uploads.id FROM ${late} LIMIT ?)`,
    )
    this.#refundable = db.prepare(
      "SELECT id, w_cid AS wCid FROM uploads WHERE status = 'Refundable' AND id > ? ORDER BY id LIMIT ?",
    )
    this.#markRefunded = db.prepare("UPDATE uploads SET status = 'Refunded' WHERE id = ?")
    const freeLate = `is_free = 1 AND status IN ('Free', 'TaskCreated') AND created_epoch <= ?
      AND NOT EXISTS (SELECT 1 FROM offline_deals WHERE car = uploads.car AND status = 'Active')`
    this.#anyFreeLate = db.prepare(`SELECT 1 FROM uploads WHERE ${freeLate} LIMIT 1`)
    this.#markFreeLate = db.prepare(`UPDATE uploads SET status = 'Refunded' WHERE ${freeLate}`)
  }

  /** The payment for this upload is locked. */
  markPaid(wCid: string): void {
    this.#markPaid.run(wCid)
  }

  /** For payments after which a crash came. */
  markAllPaid(): void {
    this.#markAllPaid.run()
  }

  /** True when an upload waits for a refund, or has no deal at the deadline of its payment. */
  anyDue(epoch: number): boolean {
    return this.#anyLate.get(epoch) !== undefined || this.#refundable.get(0, 1) !== undefined
  }

  /**
   * Uploads without a deal at the deadline of their payment can be refunded.
   * @returns how many
   */
  markRefundable(epoch: number, most: number): number {
    return Number(this.#markRefundable.run(epoch, most).changes)
  }

  /** True when a free upload of this epoch or before has no deal. */
  anyFreeDue(epoch: number): boolean {
    return this.#anyFreeLate.get(epoch) !== undefined
  }

  /** Free uploads of this epoch or before without a deal are over: nothing is locked that could be refunded. */
  endFree(epoch: number): void {
    this.#markFreeLate.run(epoch)
  }

  /** Those with a number above `last`, in the order of their numbers. */
  refundable(last: number, most: number): { readonly id: number; readonly wCid: string }[] {
    return this.#refundable.all(last, most) as { id: number; wCid: string }[]
  }

  markRefunded(id: number): void {
    this.#markRefunded.run(id)
  }
}
