import { createHash } from 'node:crypto'
import { Columns } from '../../columns.js'
import { parseFil } from '../../network/fil.js'
import type { DealState, DealStatus } from '../../network/network.js'
import { type Row, tableOf } from '../../store/database.js'

export interface OfflineDeal {
  readonly id: number
  readonly car: number
  /** Number of the deal in the network. */
  readonly dealId: number
  readonly dealCid: string
  readonly pieceCid: string
  readonly pieceSize: number
  readonly minerFid: string
  /** Address of the wallet that signed the proposal. */
  readonly client: string
  readonly verified: number
  /** Attofil per epoch for the whole piece. */
  readonly price: string
  readonly startEpoch: number
  readonly endEpoch: number
  readonly status: 'Created' | 'Active' | 'Success' | 'Failed'
  /** State name of go-fil-markets. */
  readonly onChainStatus: string
  readonly note: string | null
  readonly unlockHash: string | null
  /** Unix seconds, as the following; 0 when never. */
  readonly unlockedAt: number
  readonly created: number
  readonly updated: number
}

interface LoggedState {
  readonly id: number
  readonly deal: number
  readonly onChainStatus: string
  readonly message: string
  /** Unix seconds. */
  readonly created: number
}

const DEAL = new Columns<OfflineDeal>({})

const ADDED = [
  ...(['car', 'dealId', 'dealCid', 'pieceCid', 'pieceSize', 'minerFid', 'client', 'verified', 'price'] as const),
  ...(['startEpoch', 'endEpoch', 'onChainStatus', 'created', 'updated'] as const),
]

/** The table of offline deals, and the log of their states. Call writing methods inside a transaction. */
export class DealTable extends tableOf({
  find: 'SELECT * FROM offline_deals WHERE id = ?',
  ofCar: 'SELECT * FROM offline_deals WHERE car = ? ORDER BY id',
  byDealId: 'SELECT * FROM offline_deals WHERE car = ? AND deal_id = ?',
  logOf:
    'SELECT id, deal, on_chain_status AS "onChainStatus", message, created FROM deal_logs WHERE deal = ? ORDER BY id',
  byCid: 'SELECT * FROM offline_deals WHERE deal_cid = ?',
  add: `${DEAL.insert('offline_deals', ADDED)} ON CONFLICT DO NOTHING`,
  update: `UPDATE offline_deals SET on_chain_status = ?, note = ?, updated = ?,
    status = CASE status WHEN 'Success' THEN status ELSE ? END WHERE deal_cid = ?`,
  log: 'INSERT INTO deal_logs (deal, on_chain_status, message, created) VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING',
  succeed: "UPDATE offline_deals SET status = 'Success', unlock_hash = ?, unlocked_at = ?, updated = ? WHERE id = ?",
}) {
  async find(id: number): Promise<OfflineDeal | undefined> {
    return dealOf(await this.sql.find.get(id))
  }

  async ofCar(car: number): Promise<OfflineDeal[]> {
    return (await this.sql.ofCar.all(car)).map((row) => DEAL.read(row))
  }

  /** The deal of the CAR that has this number in the network. */
  async withDealId(car: number, dealId: number): Promise<OfflineDeal | undefined> {
    return dealOf(await this.sql.byDealId.get(car, dealId))
  }

  /**
   * Keeps what the network says of a deal, and logs each state once.
   * @param now Unix seconds
   */
  async note(car: number, deal: DealStatus, now: number): Promise<OfflineDeal> {
    const { dealCid, terms, state, message } = deal
    const added = {
      ...deal,
      car,
      dealId: dealNumber(dealCid),
      minerFid: terms.minerId,
      client: deal.walletAddress,
      verified: terms.verifiedDeal ? 1 : 0,
      price: String(parseFil(terms.price) ?? 0n),
      onChainStatus: state,
      created: now,
      updated: now,
    }
    await this.sql.add.run(...DEAL.values(added, ADDED))
    await this.sql.update.run(state, message === '' ? null : message, now, statusOf(state), dealCid)
    const noted = DEAL.read((await this.sql.byCid.get(dealCid)) as Row)
    const waits = state === 'StorageDealCheckForAcceptance' ? 'Provider state: StorageDealWaitingForData' : message
    await this.sql.log.run(noted.id, state, waits, now)
    return noted
  }

  /**
   * The payments for the uploads of an active deal are unlocked.
   * @param hash of the last transfer
   */
  async succeed(id: number, hash: string, now: number): Promise<void> {
    await this.sql.succeed.run(hash, now, now, id)
  }

  logOf(deal: number): Promise<LoggedState[]> {
    return this.sql.logOf.all<LoggedState>(deal)
  }
}

function dealOf(row: Row | undefined): OfflineDeal | undefined {
  return row && DEAL.read(row)
}

function statusOf(state: DealState): OfflineDeal['status'] {
  if (state === 'StorageDealActive') return 'Active'
  return state === 'StorageDealError' || state === 'StorageDealExpired' ? 'Failed' : 'Created'
}

const HASH_BYTES = 6

/** The number of a deal: clients read one, where the network knows a CID alone. A hash of 48 bits, never 0. */
function dealNumber(dealCid: string): number {
  return createHash('sha256').update(dealCid).digest().readUIntBE(0, HASH_BYTES) || 1
}

/**
 * What becomes of paid uploads: several of them are packed into one CAR, of which a task of the task platform makes
 * offline deals. An upload keeps the least amount that it costs, in millionths of a stable coin. `deal_id` is that of
 * the network. Prices are attofil. Times are Unix seconds, epochs those of the network.
 */
export const dealSchema = `
  CREATE TABLE cars (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    payload_cid TEXT NOT NULL,
    size INTEGER NOT NULL,
    task TEXT,
    status TEXT NOT NULL DEFAULT 'TaskCreated',
    created INTEGER NOT NULL,
    created_epoch INTEGER NOT NULL
  ) STRICT;
  CREATE TABLE offline_deals (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    car INTEGER NOT NULL REFERENCES cars (id),
    deal_id INTEGER NOT NULL,
    deal_cid TEXT NOT NULL UNIQUE,
    piece_cid TEXT NOT NULL,
    piece_size INTEGER NOT NULL,
    miner_fid TEXT NOT NULL,
    client TEXT NOT NULL,
    verified INTEGER NOT NULL,
    price TEXT NOT NULL,
    start_epoch INTEGER NOT NULL,
    end_epoch INTEGER NOT NULL,
    status TEXT NOT NULL DEFAULT 'Created',
    on_chain_status TEXT NOT NULL,
    note TEXT,
    unlock_hash TEXT,
    unlocked_at INTEGER NOT NULL DEFAULT 0,
    created INTEGER NOT NULL,
    updated INTEGER NOT NULL
  ) STRICT;
  CREATE INDEX deals_of_car ON offline_deals (car, id);
  CREATE TABLE deal_logs (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    deal INTEGER NOT NULL REFERENCES offline_deals (id),
    on_chain_status TEXT NOT NULL,
    message TEXT NOT NULL,
    created INTEGER NOT NULL,
    UNIQUE (deal, on_chain_status, message)
  ) STRICT;
  CREATE TABLE mints (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    upload INTEGER NOT NULL UNIQUE REFERENCES uploads (id),
    tx_hash TEXT NOT NULL,
    mint_address TEXT NOT NULL,
    token_id TEXT NOT NULL,
    created INTEGER NOT NULL,
    updated INTEGER NOT NULL
  ) STRICT;
  ALTER TABLE uploads ADD COLUMN price INTEGER NOT NULL DEFAULT 1;
  ALTER TABLE uploads ADD COLUMN car INTEGER REFERENCES cars (id);
  CREATE INDEX uploads_by_status ON uploads (status, id);
  CREATE INDEX uploads_of_car ON uploads (car, wallet) WHERE car IS NOT NULL;
  CREATE INDEX open_locks ON locks (deadline_epoch) WHERE is_open = 1;
`
