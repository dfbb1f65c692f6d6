import type { Database } from '../../database.js'
import type { DealState, DealStatus } from '../../network/network.js'
import { parseFil } from '../../network/units/fil.js'
import { dealNumber } from './deal-number.js'

/** An offline deal of a CAR. */
export interface OfflineDeal {
  readonly id: number
  /** Number of the CAR. */
  readonly car: number
  /** Number of the deal in the network. */
  readonly dealId: number
  readonly dealCid: string
  readonly pieceCid: string
  /** Bytes. */
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

export interface LoggedState {
  readonly id: number
  readonly deal: number
  readonly onChainStatus: string
  readonly message: string
  /** Unix seconds. */
  readonly created: number
}

const COLUMNS = `id, car, deal_id AS dealId, deal_cid AS dealCid, piece_cid AS pieceCid, piece_size AS pieceSize,
  miner_fid AS minerFid, client, verified, price, start_epoch AS startEpoch, end_epoch AS endEpoch, status,
  on_chain_status AS onChainStatus, note, unlock_hash AS unlockHash, unlocked_at AS unlockedAt, created, updated
  FROM offline_deals`

/** The table of offline deals, and the log of their states. Call writing methods inside a transaction. */
export class DealTable {
  readonly #find
  readonly #ofCar
  readonly #byDealId
  readonly #logOf
  readonly #byCid
  readonly #add
  readonly #update
  readonly #log
  readonly #succeed

  constructor(db: Database) {
    this.#find = db.prepare(`SELECT ${COLUMNS} WHERE id = ?`)
    this.#ofCar = db.prepare(`SELECT ${COLUMNS} WHERE car = ? ORDER BY id`)
    this.#byDealId = db.prepare(`SELECT ${COLUMNS} WHERE car = ? AND deal_id = ?`)
    this.#logOf = db.prepare(
      'SELECT id, deal, on_chain_status AS onChainStatus, message, created FROM deal_logs WHERE deal = ? ORDER BY id',
    )
    this.#byCid = db.prepare(`SELECT ${COLUMNS} WHERE deal_cid = ?`)
    this.#add = db.prepare(
      `INSERT OR IGNORE INTO offline_deals (car, deal_id, deal_cid, piece_cid, piece_size, miner_fid, client, verified,
        price, start_epoch, end_epoch, on_chain_status, created, updated) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
    )
    this.#update = db.prepare(
      `UPDATE offline_deals SET on_chain_status = ?, note = ?, updated = ?,
        status = CASE status WHEN 'Success' THEN status ELSE ? END WHERE deal_cid = ?`,
    )
    this.#log = db.prepare(
      'INSERT OR IGNORE INTO deal_logs (deal, on_chain_status, message, created) VALUES (?, ?, ?, ?)',
    )
    this.#succeed = db.prepare(
      "UPDATE offline_deals SET status = 'Success', unlock_hash = ?, unlocked_at = ?, updated = ? WHERE id = ?",
    )
  }

  find(id: number): OfflineDeal | undefined {
    return this.#find.get(id) as OfflineDeal | undefined
  }

  ofCar(car: number): OfflineDeal[] {
    return this.#ofCar.all(car) as OfflineDeal[]
  }

  /** The deal of the CAR that has this number in the network. */
  withDealId(car: number, dealId: number): OfflineDeal | undefined {
    return this.#byDealId.get(car, dealId) as OfflineDeal | undefined
  }

  /**
   * Keeps what the network says of a deal, and logs each state once.
   * @param now Unix seconds
   */
  note(car: number, deal: DealStatus, now: number): OfflineDeal {
    const { dealCid, pieceCid, pieceSize, terms, walletAddress, startEpoch, endEpoch, state, message } = deal
    const price = String(parseFil(terms.price) ?? 0n)
    const facts = [car, dealNumber(dealCid), dealCid, pieceCid, pieceSize, terms.minerId, walletAddress]
    const verified = terms.verifiedDeal ? 1 : 0
    this.#add.run(...facts, verified, price, startEpoch, endEpoch, state, now, now)
    this.#update.run(state, message === '' ? null : message, now, statusOf(state), dealCid)
    const noted = this.#byCid.get(dealCid) as OfflineDeal
    const waits = state === 'StorageDealCheckForAcceptance' ? 'Provider state: StorageDealWaitingForData' : message
    this.#log.run(noted.id, state, waits, now)
    return noted
  }

  /**
   * The payments for the uploads of an active deal are unlocked.
   * @param hash of the last transfer
   */
  succeed(id: number, hash: string, now: number): void {
    this.#succeed.run(hash, now, now, id)
  }

  /** In the order of insertion. */
  logOf(deal: number): LoggedState[] {
    return this.#logOf.all(deal) as LoggedState[]
  }
}

function statusOf(state: DealState): OfflineDeal['status'] {
  if (state === 'StorageDealActive') return 'Active'
  return state === 'StorageDealError' || state === 'StorageDealExpired' ? 'Failed' : 'Created'
}
