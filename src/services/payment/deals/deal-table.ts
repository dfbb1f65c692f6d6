import type { Database } from '../../database.js'

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

/** The table of offline deals, and the log of their states. */
export class DealTable {
  readonly #find
  readonly #ofCar
  readonly #byDealId
  readonly #logOf

  constructor(db: Database) {
    this.#find = db.prepare(`SELECT ${COLUMNS} WHERE id = ?`)
    this.#ofCar = db.prepare(`SELECT ${COLUMNS} WHERE car = ? ORDER BY id`)
    this.#byDealId = db.prepare(`SELECT ${COLUMNS} WHERE car = ? AND deal_id = ?`)
    this.#logOf = db.prepare(
      'SELECT id, deal, on_chain_status AS onChainStatus, message, created FROM deal_logs WHERE deal = ? ORDER BY id',
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

  /** In the order of insertion. */
  logOf(deal: number): LoggedState[] {
    return this.#logOf.all(deal) as LoggedState[]
  }
}
