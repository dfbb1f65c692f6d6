import type { Database } from '../../database.js'
import type { DealTotals } from '../network.js'
import { parseFil } from '../units/fil.js'
import type { DealRecord } from './deal-record.js'

/** The table of deals of a network. Call writing methods inside a transaction. */
export class DealTable {
  readonly #byReference
  readonly #byCid
  readonly #add
  readonly #ended
  readonly #drop
  readonly #inCustody
  readonly #totals
  readonly #waitingFor
  readonly #receive

  /** @param db has `dealSchema` */
  constructor(db: Database) {
    this.#byReference = db.prepare('SELECT * FROM deals WHERE reference = ?')
    this.#byCid = db.prepare('SELECT * FROM deals WHERE deal_cid = ?')
    this.#add = db.prepare(`
      INSERT INTO deals (
        reference, deal_cid, miner_id, price, duration, verified_deal, fast_retrieval, wallet_address, data_cid, piece_cid, piece_size, car_size,
        time_stamp, proposed_epoch, accept_epoch, seal_epoch, start_epoch, end_epoch, proposal, rejection, custody, waiting, active_epoch
      ) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
    `)
    this.#ended = db.prepare(
      'SELECT reference, custody FROM deals WHERE custody IS NOT NULL AND end_epoch <= ? ORDER BY end_epoch LIMIT ?',
    )
    this.#drop = db.prepare('UPDATE deals SET custody = NULL WHERE reference = ?')
    this.#inCustody = db.prepare('SELECT 1 FROM deals WHERE custody = ? LIMIT 1')
    this.#totals = db.prepare(`
      SELECT miner_id, verified_deal, custody IS NOT NULL AS held, price, count(*) AS deals, sum(piece_size) AS piece_bytes
      FROM deals WHERE waiting = 0 GROUP BY 1, 2, 3, 4
    `)
    this.#waitingFor = db.prepare(
      'SELECT * FROM deals WHERE waiting = 1 AND miner_id = ? AND piece_cid = ? AND start_epoch > ? ORDER BY time_stamp LIMIT ?',
    )
    this.#receive = db.prepare(`
      UPDATE deals SET waiting = 0, custody = ?, accept_epoch = ?, seal_epoch = ?, active_epoch = ?
      WHERE deal_cid = ? AND waiting = 1
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
      deal.waiting ? 1 : 0,
      deal.activeEpoch,
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

  /** The deals that wait for this piece and have not failed by this epoch, the earliest first. */
  waitingFor(minerId: string, pieceCid: string, epoch: number, limit: number): DealRecord[] {
    return this.#waitingFor.all(minerId, pieceCid, epoch, limit).map((row) => record(row) as DealRecord)
  }

  /** Records the data of a waiting deal. Returns false when it does not wait any more. */
  receive(dealCid: string, custody: string, schedule: Pick<DealRecord, 'acceptEpoch' | 'sealEpoch' | 'activeEpoch'>) {
    const { acceptEpoch, sealEpoch, activeEpoch } = schedule
    return this.#receive.run(custody, acceptEpoch, sealEpoch, activeEpoch, dealCid).changes > 0
  }

  totals(): DealTotals[] {
    const sums = new Map<string, DealTotals>()
    for (const row of this.#totals.iterate()) {
      const { miner_id: minerId, verified_deal: verified, held, deals, piece_bytes: pieceBytes } = row
      const key = `${minerId} ${verified} ${held}`
      const sum = sums.get(key)
      sums.set(key, {
        minerId,
        verified: verified === 1,
        held: held === 1,
        deals: deals + (sum?.deals ?? 0),
        pieceBytes: pieceBytes + (sum?.pieceBytes ?? 0),
        price: (parseFil(row.price) ?? 0n) * BigInt(deals) + (sum?.price ?? 0n),
      })
    }
    return [...sums.values()]
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
    activeEpoch: row.active_epoch ?? row.start_epoch,
    endEpoch: row.end_epoch,
    proposal: row.proposal,
    rejection: row.rejection ?? undefined,
    custody: row.custody ?? undefined,
    waiting: row.waiting === 1,
  }
}
