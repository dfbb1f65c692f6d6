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
  readonly won: number | null
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
      INSERT OR IGNORE INTO bids (task, miner_id, price, score, min_piece_size, contact_info, proposal, expire_days, created)
      VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
    `)
    this.#ofTask = db.prepare('SELECT * FROM bids WHERE task = ? ORDER BY id')
    this.#since = db.prepare('SELECT count(*) AS count FROM bids WHERE miner_id = ? AND created > ?')
    this.#win = db.prepare("UPDATE bids SET status = 'Won', won = ? WHERE id = ?")
    this.#lose = db.prepare("UPDATE bids SET status = 'Lost' WHERE task = ? AND status = 'New'")
  }

  /** Returns false when the provider has a bid on this task. */
  add(task: number, offer: Offer, now: number): boolean {
    const { minerId, price, score, minPieceSize, contactInfo, proposal, expireDays } = offer
    const { changes } = this.#add.run(
      task,
      minerId,
      sortable(price),
      score,
      minPieceSize,
      contactInfo,
      proposal,
      expireDays,
      now,
    )
    return Number(changes) > 0
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
      won: row.won,
    }))
  }

  /** Number of bids of a provider after that time, Unix seconds. */
  countSince(minerId: string, time: number): number {
    return this.#since.get(minerId, time).count
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
