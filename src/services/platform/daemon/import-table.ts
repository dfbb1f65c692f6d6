import type { Database } from '../../database.js'

/** A deal whose CAR a provider has, and whose import goes on. */
export interface DealToImport {
  readonly id: number
  readonly status: string
  readonly minerId: string
  /** UUID of the task. */
  readonly uuid: string
  readonly isVerified: boolean
  readonly fastRetrieval: boolean
  /** Of the bid that won the task, attofil per GiB and epoch; null when the poster chose the provider. */
  readonly bidPrice: bigint | null
  /** Epochs. */
  readonly duration: number
  readonly dealCid: string | null
  readonly payloadCid: string | null
  readonly pieceCid: string | null
  /** Bytes that the CAR takes in the folder. */
  readonly stored: number
}

const DUE =
  "due IS NOT NULL AND stored IS NOT NULL AND deals.status IN ('ReadyForImport', 'FileImporting', 'FileImported')"

/** Which imports are to go on. */
export class ImportTable {
  readonly #next
  readonly #isDue
  readonly #postpone
  readonly #isTaken

  constructor(db: Database) {
    this.#isDue = db.prepare(`SELECT 1 FROM deals WHERE ${DUE} AND due <= ? LIMIT 1`)
    this.#next = db.prepare(`
      SELECT deals.id, deals.status, tasks.miner_id AS minerId, tasks.uuid, tasks.type = 'verified' AS isVerified,
        tasks.fast_retrieval AS fastRetrieval, tasks.duration, deals.deal_cid AS dealCid, deals.payload_cid AS payloadCid,
        deals.piece_cid AS pieceCid, deals.stored,
        (SELECT price FROM bids WHERE bids.task = tasks.id AND bids.miner_id = tasks.miner_id AND bids.status = 'Won') AS price
      FROM deals JOIN tasks ON tasks.id = deals.task
      WHERE deals.id = (SELECT id FROM deals WHERE ${DUE} AND due <= ? ORDER BY due, id LIMIT 1)
    `)
    this.#postpone = db.prepare('UPDATE deals SET due = ? WHERE id = ? AND due IS NOT NULL')
    this.#isTaken = db.prepare('SELECT 1 FROM deals WHERE deal_cid = ? LIMIT 1')
  }

  anyDue(epoch: number): boolean {
    return this.#isDue.get(epoch) !== undefined
  }

  /** The deal that is due for the longest time. */
  next(epoch: number): DealToImport | undefined {
    const row = this.#next.get(epoch)
    if (row === undefined) return undefined
    const { price, isVerified, fastRetrieval, ...rest } = row
    return {
      ...rest,
      isVerified: isVerified === 1,
      fastRetrieval: fastRetrieval === 1,
      bidPrice: price === null ? null : BigInt(price),
    }
  }

  /** True when a task has this deal. */
  isTaken(dealCid: string): boolean {
    return this.#isTaken.get(dealCid) !== undefined
  }

  /** Call it inside a transaction. */
  postpone(id: number, due: number): void {
    this.#postpone.run(due, id)
  }
}
