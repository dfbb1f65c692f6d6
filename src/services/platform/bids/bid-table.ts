import type { Database } from '../../database.js'
import { sortable } from '../units/price.js'

/** `New` until the task has a provider or expires; then `Won`, or `Lost`. */
export type BidStatus = 'New' | 'Won' | 'Lost'

/** What a provider offers for a task. */
export interface Offer {
  readonly minerId: string
  /** Attofil per GiB and epoch. */
  readonly price: bigint
  /** Of the provider, at the time of the bid. */
  readonly score: number
  /** Bytes. */
  readonly minPieceSize: number
  readonly contactInfo: string
  readonly proposal: string
  /** Days for which the offer holds. */
  readonly expireDays: number
}

export interface Bid extends Offer {
  readonly id: number
  readonly task: number
  readonly status: BidStatus
  /** Unix seconds. */
  readonly created: number
  readonly createdEpoch: number
  readonly won: number | null
}

/** When a bid is made. */
export interface BidTime {
  /** Unix seconds. */
  readonly created: number
  readonly createdEpoch: number
}

/** The table of bids, at most one per task and provider. Call writing methods inside a transaction. */
export class BidTable {
  readonly #add
  readonly #ofTask
  readonly #since
  readonly #win
  readonly #lose

  constructor(db: Database) {
    this.#add = db.prepare(`
      INSERT INTO bids (task, miner_id, price, score, min_piece_size, contact_info, proposal, expire_days, created, created_epoch)
      VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
      ON CONFLICT (task, miner_id) DO UPDATE SET price = excluded.price, score = excluded.score,
        min_piece_size = excluded.min_piece_size, contact_info = excluded.contact_info, proposal = excluded.proposal,
        expire_days = excluded.expire_days, created = excluded.created, created_epoch = excluded.created_epoch
    `)
    this.#ofTask = db.prepare('SELECT * FROM bids WHERE task = ? ORDER BY id')
    this.#since = db.prepare('SELECT count(*) AS count FROM bids WHERE miner_id = ? AND created_epoch > ?')
    this.#win = db.prepare("UPDATE bids SET status = 'Won', won = ? WHERE id = ?")
    this.#lose = db.prepare("UPDATE bids SET status = 'Lost' WHERE task = ? AND status = 'New'")
  }

  /** Adds the bid of a provider on this task, or replaces it. */
  put(task: number, offer: Offer, { created, createdEpoch }: BidTime): void {
    const { minerId, price, score, minPieceSize, contactInfo, proposal, expireDays } = offer
    const values = [minerId, sortable(price), score, minPieceSize, contactInfo, proposal, expireDays]
    this.#add.run(task, ...values, created, createdEpoch)
  }

  ofTask(task: number): Bid[] {
    return this.#ofTask.all(task).map((row) => ({
      id: row.id,
      task: row.task,
      minerId: row.miner_id,
      price: BigInt(row.price),
      score: row.score,
      minPieceSize: row.min_piece_size,
      contactInfo: row.contact_info,
      proposal: row.proposal,
      expireDays: row.expire_days,
      status: row.status,
      created: row.created,
      createdEpoch: row.created_epoch,
      won: row.won,
    }))
  }

  /** Number of bids of a provider after that epoch. */
  countSince(minerId: string, epoch: number): number {
    return this.#since.get(minerId, epoch).count
  }

  /** This bid wins, and all others on its task lose. */
  win({ id, task }: Bid, now: number): void {
    this.#win.run(now, id)
    this.close(task)
  }

  /** No open bid on this task wins any more. */
  close(task: number): void {
    this.#lose.run(task)
  }
}
