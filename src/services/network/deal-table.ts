import { Columns } from '../columns.js'
import { type Database, statements } from '../database.js'
import type { DealRecord } from './deal-record.js'
import { parseFil } from './fil.js'
import type { DealTerms, DealTotals } from './network.js'

const DEAL = new Columns<Omit<DealRecord, 'terms'> & DealTerms>({
  verifiedDeal: 'flag',
  fastRetrieval: 'flag',
  rejection: 'optional',
  custody: 'optional',
  waiting: 'flag',
})

const ADDED = [
  ...([
    'reference',
    'dealCid',
    'minerId',
    'price',
    'duration',
    'verifiedDeal',
    'fastRetrieval',
    'walletAddress',
  ] as const),
  ...([
    'dataCid',
    'pieceCid',
    'pieceSize',
    'carSize',
    'timeStamp',
    'proposedEpoch',
    'acceptEpoch',
    'sealEpoch',
  ] as const),
  ...(['startEpoch', 'endEpoch', 'proposal', 'rejection', 'custody', 'waiting', 'activeEpoch'] as const),
]

/** The table of deals of a network. Call writing methods inside a transaction. */
export class DealTable {
  readonly #sql

  /** @param db has `dealSchema` */
  constructor(db: Database) {
    this.#sql = statements(db, {
      byReference: 'SELECT * FROM deals WHERE reference = ?',
      byCid: 'SELECT * FROM deals WHERE deal_cid = ?',
      add: DEAL.insert('deals', ADDED),
      ended:
        'SELECT reference, custody FROM deals WHERE custody IS NOT NULL AND end_epoch <= ? ORDER BY end_epoch LIMIT ?',
      drop: 'UPDATE deals SET custody = NULL WHERE reference = ?',
      inCustody: 'SELECT 1 FROM deals WHERE custody = ? LIMIT 1',
      totals: `
      SELECT miner_id, verified_deal, custody IS NOT NULL AS held, price, count(*) AS deals, sum(piece_size) AS piece_bytes
      FROM deals WHERE waiting = 0 GROUP BY 1, 2, 3, 4
    `,
      waitingFor:
        'SELECT * FROM deals WHERE waiting = 1 AND miner_id = ? AND piece_cid = ? AND start_epoch > ? ORDER BY time_stamp LIMIT ?',
      receive: `
      UPDATE deals SET waiting = 0, custody = ?, accept_epoch = ?, seal_epoch = ?, active_epoch = ?
      WHERE deal_cid = ? AND waiting = 1
    `,
    })
  }

  find(reference: string): DealRecord | undefined {
    return record(this.#sql.byReference.get(reference))
  }

  findByCid(dealCid: string): DealRecord | undefined {
    return record(this.#sql.byCid.get(dealCid))
  }

  /** Throws when a deal with this reference or CID exists. */
  add(deal: DealRecord): void {
    this.#sql.add.run(...DEAL.values({ ...deal, ...deal.terms }, ADDED))
  }

  /**
   * Removes at most `limit` deals that have ended by this epoch from their providers' custody, and returns the
   * custodies.
   */
  takeEnded(epoch: number, limit: number): string[] {
    const ended = this.#sql.ended.all(epoch, limit) as { reference: string; custody: string }[]
    for (const { reference } of ended) this.#sql.drop.run(reference)
    return ended.map(({ custody }) => custody)
  }

  isInCustody(custody: string): boolean {
    return this.#sql.inCustody.get(custody) !== undefined
  }

  /** The deals that wait for this piece and have not failed by this epoch, the earliest first. */
  waitingFor(minerId: string, pieceCid: string, epoch: number, limit: number): DealRecord[] {
    return this.#sql.waitingFor.all(minerId, pieceCid, epoch, limit).map((row) => record(row) as DealRecord)
  }

  /** Records the data of a waiting deal. Returns false when it does not wait any more. */
  receive(dealCid: string, custody: string, schedule: Pick<DealRecord, 'acceptEpoch' | 'sealEpoch' | 'activeEpoch'>) {
    const { acceptEpoch, sealEpoch, activeEpoch } = schedule
    return this.#sql.receive.run(custody, acceptEpoch, sealEpoch, activeEpoch, dealCid).changes > 0
  }

  totals(): DealTotals[] {
    const sums = new Map<string, DealTotals>()
    for (const row of this.#sql.totals.iterate()) {
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

function record(row: Readonly<Record<string, unknown>> | undefined): DealRecord | undefined {
  if (row === undefined) return undefined
  const { minerId, price, duration, verifiedDeal, fastRetrieval, activeEpoch, ...deal } = DEAL.read(row)
  const terms = { minerId, price, duration, verifiedDeal, fastRetrieval }
  return { ...deal, terms, activeEpoch: activeEpoch ?? deal.startEpoch }
}

/**
 * The deals of a network. A deal with `waiting` has been proposed, and its data reach the provider in another way; it
 * has neither custody nor schedule until then. `active_epoch` is null for deals of earlier versions, which became
 * active at their start.
 */
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
    custody TEXT,
    waiting INTEGER NOT NULL DEFAULT 0,
    active_epoch INTEGER
  ) STRICT;
  CREATE INDEX IF NOT EXISTS deals_in_custody ON deals (custody) WHERE custody IS NOT NULL;
  CREATE INDEX IF NOT EXISTS deals_in_sums ON deals (miner_id, verified_deal, custody IS NOT NULL, price, piece_size)
    WHERE waiting = 0;
  CREATE INDEX IF NOT EXISTS deals_waiting ON deals (miner_id, piece_cid) WHERE waiting = 1;
  CREATE INDEX IF NOT EXISTS deals_by_end ON deals (end_epoch) WHERE custody IS NOT NULL;
`

/** Adapts the deals of earlier versions, none of which waited for its data. */
export function adaptDeals(db: Database): void {
  const columns = db.prepare('PRAGMA table_info(deals)').all()
  if (columns.length === 0 || columns.some(({ name }) => name === 'waiting')) return
  db.exec(`
    BEGIN IMMEDIATE;
    ALTER TABLE deals ADD COLUMN waiting INTEGER NOT NULL DEFAULT 0;
    ALTER TABLE deals ADD COLUMN active_epoch INTEGER;
    DROP INDEX IF EXISTS deals_in_sums;
    COMMIT;
  `)
}

/** Runs one job per reference at a time. */
export class ByReference<T> {
  readonly #running = new Map<string, Promise<T>>()

  /**
   * Returns what `find` finds, or else the result of `job`. While a job for this reference runs, the call waits for it
   * and then looks again: a second call returns the result of the first, or makes its own attempt if the first failed.
   * Rejects with the signal's reason if it aborts meanwhile.
   */
  async run(
    reference: string,
    find: () => T | undefined,
    job: () => Promise<T>,
    signal: AbortSignal | undefined,
  ): Promise<T> {
    for (;;) {
      signal?.throwIfAborted()
      const found = find()
      if (found !== undefined) return found
      const running = this.#running.get(reference)
      if (running === undefined) return this.#start(reference, job)
      await endOf(running, signal)
    }
  }

  /** Resolves when no job runs. */
  async idle(): Promise<void> {
    while (this.#running.size > 0) await Promise.allSettled(this.#running.values())
  }

  #start(reference: string, job: () => Promise<T>): Promise<T> {
    const running = job().finally(() => this.#running.delete(reference))
    this.#running.set(reference, running)
    return running
  }
}

function endOf(running: Promise<unknown>, signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve, reject) => {
    const abort = (): void => reject(signal?.reason)
    signal?.addEventListener('abort', abort, { once: true })
    const end = (): void => {
      signal?.removeEventListener('abort', abort)
      resolve()
    }
    running.then(end, end)
  })
}
