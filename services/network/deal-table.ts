import { Columns } from '../columns.js'
import { type EarlyDatabase, type Row, tableOf } from '../store/database.js'
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
export class DealTable extends tableOf({
  byReference: 'SELECT * FROM deals WHERE reference = ?',
  byCid: 'SELECT * FROM deals WHERE deal_cid = ?',
  add: DEAL.insert('deals', ADDED),
  ended: 'SELECT reference, custody FROM deals WHERE custody IS NOT NULL AND end_epoch <= ? ORDER BY end_epoch LIMIT ?',
  drop: 'UPDATE deals SET custody = NULL WHERE reference = ?',
  custodies: 'SELECT custody FROM deals WHERE custody IS NOT NULL AND custody > ? ORDER BY custody LIMIT ?',
  totals: `
  SELECT miner_id AS "minerId", verified_deal AS verified, custody IS NOT NULL AS held, price, count(*) AS deals,
    sum(piece_size) AS "pieceBytes"
  FROM deals WHERE waiting = 0 GROUP BY 1, 2, 3, 4
`,
  waitingFor:
    'SELECT * FROM deals WHERE waiting = 1 AND miner_id = ? AND piece_cid = ? AND start_epoch > ? ORDER BY time_stamp LIMIT ?',
  receive: `
  UPDATE deals SET waiting = 0, custody = ?, accept_epoch = ?, seal_epoch = ?, active_epoch = ?
  WHERE deal_cid = ? AND waiting = 1
`,
}) {
  async find(reference: string): Promise<DealRecord | undefined> {
    return record(await this.sql.byReference.get(reference))
  }

  async findByCid(dealCid: string): Promise<DealRecord | undefined> {
    return record(await this.sql.byCid.get(dealCid))
  }

  /** Adds a deal, unless there is one of this reference, and returns the one that is there now. */
  async addOnce(deal: DealRecord): Promise<DealRecord> {
    const found = await this.find(deal.reference)
    if (found === undefined) await this.sql.add.run(...DEAL.values({ ...deal, ...deal.terms }, ADDED))
    return found ?? deal
  }

  /**
   * Removes at most `limit` deals that have ended by this epoch from their providers' custody, and returns the
   * custodies.
   */
  async takeEnded(epoch: number, limit: number): Promise<string[]> {
    const ended = await this.sql.ended.all<{ reference: string; custody: string }>(epoch, limit)
    for (const { reference } of ended) await this.sql.drop.run(reference)
    return ended.map(({ custody }) => custody)
  }

  /** Custodies of deals above one of them, in their order. */
  custodies(after: string, limit: number): Promise<{ readonly custody: string }[]> {
    return this.sql.custodies.all(after, limit)
  }

  /** The deals that wait for this piece and have not failed by this epoch, the earliest first. */
  async waitingFor(minerId: string, pieceCid: string, epoch: number, limit: number): Promise<DealRecord[]> {
    const rows = await this.sql.waitingFor.all(minerId, pieceCid, epoch, limit)
    return rows.map((row) => record(row) as DealRecord)
  }

  /** Records the data of a waiting deal. Returns false when it does not wait any more. */
  async receive(
    dealCid: string,
    custody: string,
    { acceptEpoch, sealEpoch, activeEpoch }: Pick<DealRecord, 'acceptEpoch' | 'sealEpoch' | 'activeEpoch'>,
  ): Promise<boolean> {
    return (await this.sql.receive.run(custody, acceptEpoch, sealEpoch, activeEpoch, dealCid)) > 0
  }

  async totals(): Promise<DealTotals[]> {
    const sums = new Map<string, DealTotals>()
    for (const { minerId, verified, held, price, deals, pieceBytes } of await this.sql.totals.all<TotalsRow>()) {
      const key = `${minerId} ${verified} ${held}`
      const sum = sums.get(key)
      sums.set(key, {
        minerId,
        verified: verified === 1,
        held: held === 1,
        deals: deals + (sum?.deals ?? 0),
        pieceBytes: pieceBytes + (sum?.pieceBytes ?? 0),
        price: (parseFil(price) ?? 0n) * BigInt(deals) + (sum?.price ?? 0n),
      })
    }
    return [...sums.values()]
  }
}

interface TotalsRow {
  readonly minerId: string
  readonly verified: number
  readonly held: number
  readonly price: string
  readonly deals: number
  readonly pieceBytes: number
}

function record(row: Row | undefined): DealRecord | undefined {
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
  CREATE INDEX IF NOT EXISTS deals_in_sums ON deals (miner_id, verified_deal, (custody IS NOT NULL), price, piece_size)
    WHERE waiting = 0;
  CREATE INDEX IF NOT EXISTS deals_waiting ON deals (miner_id, piece_cid) WHERE waiting = 1;
  CREATE INDEX IF NOT EXISTS deals_by_end ON deals (end_epoch) WHERE custody IS NOT NULL;
`

/** Adapts the deals of earlier versions, none of which waited for its data. */
export function adaptDeals(db: EarlyDatabase): void {
  const columns = db.columns('deals')
  if (columns.length === 0 || columns.includes('waiting')) return
  db.exec(`
    ALTER TABLE deals ADD COLUMN waiting INTEGER NOT NULL DEFAULT 0;
    ALTER TABLE deals ADD COLUMN active_epoch INTEGER;
    DROP INDEX IF EXISTS deals_in_sums;
  `)
}

/** Runs one job per reference at a time. */
export class ByReference<T> {
  readonly #running = new Map<string, Promise<T>>()

  /**
   * Returns what `find` finds, or else the result of `job`. While another call for this reference runs, it waits for
   * that and then looks itself: a second call returns the result of the first, or makes its own attempt if the first
   * failed. Rejects with the signal's reason if it aborts meanwhile.
   */
  async run(
    reference: string,
    find: () => Promise<T | undefined>,
    job: () => Promise<T>,
    signal: AbortSignal | undefined,
  ): Promise<T> {
    for (;;) {
      signal?.throwIfAborted()
      const running = this.#running.get(reference)
      if (running === undefined) return this.#start(reference, async () => (await find()) ?? job())
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
