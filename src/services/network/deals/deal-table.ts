import type { Database } from '../../database.js'
import type { DealTotals } from '../network.js'
import type { DealRecord } from './deal-record.js'

export const dealSchema = `
  CREATE TABLE IF NOT EXISTS deals (
    reference TEXT PRIMARY KEY,
    deal_cid TEXT NOT NULL UNIQUE,
    miner_id TEXT NOT NULL,
    price TEXT NOT NULL,
    duration INTEGER NOT NULL,
    verified_deal INTEGER NOT NULL,
    fast_retrieval INTEGER NOT NULL,
    wallet_address TEXT NOT NULL,
    data_cid TEXT NOT NULL,
    piece_cid TEXT NOT NULL,
    piece_size INTEGER NOT NULL,
    car_size INTEGER NOT NULL,
    time_stamp INTEGER NOT NULL,
    proposed_epoch INTEGER NOT NULL,
    accept_epoch INTEGER NOT NULL,
    seal_epoch INTEGER NOT NULL,
    start_epoch INTEGER NOT NULL,
    end_epoch INTEGER NOT NULL,
    proposal BLOB NOT NULL,
    rejection TEXT,
    custody TEXT
  ) STRICT;
  CREATE INDEX IF NOT EXISTS deals_in_custody ON deals (custody) WHERE custody IS NOT NULL;
  CREATE INDEX IF NOT EXISTS deals_in_sums ON deals (miner_id, verified_deal, custody IS NOT NULL, piece_size, price);
  CREATE INDEX IF NOT EXISTS deals_by_end ON deals (end_epoch) WHERE custody IS NOT NULL;
`

/** The table of deals of a network. Call writing methods inside a transaction. */
export class DealTable {
  readonly #byReference
  readonly #byCid
  readonly #add
  readonly #ended
  readonly #drop
  readonly #inCustody
  readonly #totals

  /** @param db has `dealSchema` */
  constructor(db: Database) {
    this.#byReference = db.prepare('SELECT * FROM deals WHERE reference = ?')
    this.#byCid = db.prepare('SELECT * FROM deals WHERE deal_cid = ?')
    this.#add = db.prepare(`
      INSERT INTO deals (
        reference, deal_cid, miner_id, price, duration, verified_deal, fast_retrieval, wallet_address, data_cid, piece_cid, piece_size, car_size,
        time_stamp, proposed_epoch, accept_epoch, seal_epoch, start_epoch, end_epoch, proposal, rejection, custody
      ) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
    `)
    this.#ended = db.prepare(
      'SELECT reference, custody FROM deals WHERE custody IS NOT NULL AND end_epoch <= ? ORDER BY end_epoch LIMIT ?',
    )
    this.#drop = db.prepare('UPDATE deals SET custody = NULL WHERE reference = ?')
    this.#inCustody = db.prepare('SELECT 1 FROM deals WHERE custody = ? LIMIT 1')
    this.#totals = db.prepare(`
      SELECT miner_id, verified_deal, custody IS NOT NULL AS held, count(*) AS deals, sum(piece_size) AS piece_bytes,
        sum(CAST(price AS REAL)) AS price
      FROM deals GROUP BY 1, 2, 3
    `)
  }

  find(reference: string): DealRecord | undefined {
    return record(this.#byReference.get(reference))
  }

  findByCid(dealCid: string): DealRecord | undefined {
    return record(this.#byCid.get(dealCid))
  }

  /** Throws when a deal with this reference or CID exists. */
  add(deal: DealRecord): void {
    const { terms } = deal
    this.#add.run(
      deal.reference,
      deal.dealCid,
      terms.minerId,
      terms.price,
      terms.duration,
      terms.verifiedDeal ? 1 : 0,
      terms.fastRetrieval ? 1 : 0,
      deal.walletAddress,
      deal.dataCid,
      deal.pieceCid,
      deal.pieceSize,
      deal.carSize,
      deal.timeStamp,
      deal.proposedEpoch,
      deal.acceptEpoch,
      deal.sealEpoch,
      deal.startEpoch,
      deal.endEpoch,
      deal.proposal,
      deal.rejection ?? null,
      deal.custody ?? null,
    )
  }

  /**
   * Removes at most `limit` deals that have ended by this epoch from their providers' custody, and returns the
   * custodies.
   */
  takeEnded(epoch: number, limit: number): string[] {
    const ended = this.#ended.all(epoch, limit) as { reference: string; custody: string }[]
    for (const { reference } of ended) this.#drop.run(reference)
    return ended.map(({ custody }) => custody)
  }

  isInCustody(custody: string): boolean {
    return this.#inCustody.get(custody) !== undefined
  }

  totals(): DealTotals[] {
    return this.#totals.all().map((row) => ({
      minerId: row.miner_id,
      verified: row.verified_deal === 1,
      held: row.held === 1,
      deals: row.deals,
      pieceBytes: row.piece_bytes,
      price: row.price,
    }))
  }
}

function record(row: ReturnType<ReturnType<Database['prepare']>['get']>): DealRecord | undefined {
  if (row === undefined) return undefined
  return {
    reference: row.reference,
    terms: {
      minerId: row.miner_id,
      price: row.price,
      duration: row.duration,
      verifiedDeal: row.verified_deal === 1,
      fastRetrieval: row.fast_retrieval === 1,
    },
    walletAddress: row.wallet_address,
    dataCid: row.data_cid,
    pieceCid: row.piece_cid,
    pieceSize: row.piece_size,
    carSize: row.car_size,
    dealCid: row.deal_cid,
    timeStamp: row.time_stamp,
    proposedEpoch: row.proposed_epoch,
    acceptEpoch: row.accept_epoch,
    sealEpoch: row.seal_epoch,
    startEpoch: row.start_epoch,
    endEpoch: row.end_epoch,
    proposal: row.proposal,
    rejection: row.rejection ?? undefined,
    custody: row.custody ?? undefined,
  }
}
